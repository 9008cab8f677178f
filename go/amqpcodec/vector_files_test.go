package amqpcodec_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The vectors of spec/vectors, which all codecs of the repository are tested on; its README says what they are.

// vector has the members of all files; each file uses some.
type vector struct {
	Name       string                     `json:"name"`
	Bytes      hexBytes                   `json:"bytes"`
	EncodesAs  hexBytes                   `json:"encodes_as"`
	Kind       string                     `json:"kind"`
	Channel    uint16                     `json:"channel"`
	Payload    hexBytes                   `json:"payload"`
	Method     string                     `json:"method"`
	ClassID    uint16                     `json:"class_id"`
	MethodID   uint16                     `json:"method_id"`
	Fields     map[string]json.RawMessage `json:"fields"`
	BodySize   uint64                     `json:"body_size"`
	Properties map[string]json.RawMessage `json:"properties"`
	Table      json.RawMessage            `json:"table"`
	What       string                     `json:"what"`
	Error      string                     `json:"error"`
	Offset     int                        `json:"offset"`
	FrameMax   uint32                     `json:"frame_max"`
}

// written is what has to come out when the value is written.
func (v *vector) written() []byte {
	if v.EncodesAs != nil {
		return v.EncodesAs
	}
	return v.Bytes
}

// bytes are hexadecimal in JSON.
type hexBytes []byte

func (o *hexBytes) UnmarshalJSON(text []byte) error {
	var digits string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}
	var err error
	*o, err = hex.DecodeString(digits)
	return err
}

// text is a string of a vector: JSON's when it is UTF-8, else {"hex": "ff00"}.
type text string

func (s *text) UnmarshalJSON(encoded []byte) error {
	var other struct{ Hex hexBytes }
	if err := json.Unmarshal(encoded, &other); err == nil {
		*s = text(other.Hex)
		return nil
	}
	return json.Unmarshal(encoded, (*string)(s))
}

func vectors(t testing.TB, file string) []vector {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "spec", "vectors", file))
	if err != nil {
		t.Fatalf("%v: the vectors are in the repository that this module belongs to, and so are its tests", err)
	}
	var document struct {
		Format  int
		Vectors []vector
	}
	if err := json.Unmarshal(content, &document); err != nil || document.Format != 1 || len(document.Vectors) == 0 {
		t.Fatalf("%s: format %d, %d vectors, %v", file, document.Format, len(document.Vectors), err)
	}
	return document.Vectors
}
