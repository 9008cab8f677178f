package amqpcodec_test

import (
	"errors"
	"testing"

	amqp "courser/amqpcodec"
)

func TestMalformedBytesAreRefusedWhereTheVectorsSay(t *testing.T) {
	causes := map[string]error{
		"truncated": amqp.ErrTruncated, "trailing-bytes": amqp.ErrTrailingBytes,
		"unknown-class": amqp.ErrUnknownClass, "unknown-method": amqp.ErrUnknownMethod,
		"unknown-field-type": amqp.ErrUnknownFieldType, "too-deep": amqp.ErrTooDeep,
		"unknown-property-flags": amqp.ErrUnknownPropertyFlags, "non-zero-weight": amqp.ErrNonZeroWeight,
		"unknown-type": amqp.ErrUnknownFrameType, "too-large": amqp.ErrFrameTooLarge, "bad-end": amqp.ErrBadFrameEnd,
	}
	for _, v := range vectors(t, "malformed.json") {
		for how, err := range readMalformed(t, &v) {
			var failure *amqp.DecodeError
			if !errors.Is(err, causes[v.Error]) || !errors.As(err, &failure) || failure.Offset != v.Offset {
				t.Errorf("%s, %s: %v instead of %s at offset %d", v.Name, how, err, v.Error, v.Offset)
			}
		}
	}
}

// readMalformed reads a vector in every way that has to refuse it.
func readMalformed(t *testing.T, v *vector) map[string]error {
	t.Helper()
	switch v.What {
	case "frame":
		_, _, err := amqp.ParseFrame(v.Bytes, v.FrameMax)
		return map[string]error{"frame": err}
	case "method":
		var parser amqp.MethodParser
		_, viewErr := parser.Parse(v.Bytes)
		_, ownedErr := amqp.UnmarshalMethod(v.Bytes)
		var fieldsErr error
		for _, err := range amqp.ParseFields(v.Bytes) {
			fieldsErr = err
		}
		return map[string]error{"view": viewErr, "owned": ownedErr, "fields": fieldsErr}
	case "header":
		var owned amqp.ContentHeader
		return map[string]error{"view": readHeader(v.Bytes), "owned": owned.UnmarshalBinary(v.Bytes)}
	case "table":
		return map[string]error{"table": readTable(v.Bytes)}
	default:
		t.Fatalf("%s: unknown reader %q", v.Name, v.What)
		return nil
	}
}

// readHeader reads all of a content header as views.
func readHeader(payload []byte) error {
	var header amqp.ContentHeaderView
	if err := header.Parse(payload); err != nil {
		return err
	}
	var failure *amqp.DecodeError
	if errors.As(header.Properties.Validate(), &failure) {
		return &amqp.DecodeError{Offset: failure.Offset + 12, Cause: failure.Cause, Found: failure.Found}
	}
	return nil
}
