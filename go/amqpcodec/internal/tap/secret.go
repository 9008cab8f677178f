package tap

import (
	"bytes"
	"fmt"

	"courser/amqpcodec"
)

// A secret stands for a field that is not shown.
type secret struct {
	// size is how long it is, in bytes.
	size int
	// user is whom a login by PLAIN is for, which is no secret.
	user string
}

// String says what is hidden.
func (s secret) String() string {
	if s.user != "" {
		return fmt.Sprintf("<user %q, password hidden>", s.user)
	}
	return fmt.Sprintf("<hidden, %d B>", s.size)
}

// carriesSecret tells whether a client logs in with a field of the method.
func carriesSecret(id amqpcodec.MethodID) bool {
	return id == amqpcodec.ConnectionStartOkID || id == amqpcodec.ConnectionSecureOkID ||
		id == amqpcodec.ConnectionUpdateSecretID
}

// secretOf returns what to show instead of a field that a client logs in with.
func secretOf(id amqpcodec.MethodID, field amqpcodec.Field, shown bool) (hidden secret, ok bool) {
	if shown {
		return secret{}, false
	}
	if !carriesSecret(id) || field.Name != "response" && field.Name != "new-secret" {
		return secret{}, false
	}
	hidden.size = len(field.Bytes())
	// PLAIN: an identity, usually none, the user, the password, with a zero byte before each of the last two.
	if parts := bytes.Split(field.Bytes(), []byte{0}); id == amqpcodec.ConnectionStartOkID && len(parts) == 3 {
		hidden.user = string(parts[1])
	}
	return hidden, true
}
