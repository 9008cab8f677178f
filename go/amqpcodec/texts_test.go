package amqpcodec_test

import (
	"errors"
	"fmt"
	"testing"

	amqp "courser/amqpcodec"
)

func TestNamesAreThoseOfTheProtocol(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		amqp.FrameHeartbeat:                     "heartbeat",
		amqp.FrameType(9):                       "frame type 9",
		amqp.QueueDeclareOkID:                   "queue.declare-ok",
		amqp.MethodID(60<<16 | 200):             "method 200 of class 60",
		amqp.CodePreconditionFailed:             "PRECONDITION_FAILED",
		amqp.ReplyCode(999):                     "999",
		amqp.TagLongString:                      "longstr",
		amqp.Tag('q'):                           "unknown",
		amqp.Decimal{Scale: 2, Digits: 314}:     "3.14",
		amqp.Decimal{Scale: 3, Digits: 5}:       "0.005",
		amqp.Decimal{Digits: 7}:                 "7",
		amqp.Decimal{Scale: 255, Digits: 1}:     "0." + fmt.Sprintf("%0255d", 1),
		amqp.Decimal{Scale: 1, Digits: 1 << 31}: "214748364.8",
	} {
		if got.String() != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestMethodsAreKnownByNumber(t *testing.T) {
	contents, methods := 0, 0
	for class := range uint32(128) {
		for number := range uint32(128) {
			id := amqp.MethodID(class<<16 | number)
			method := amqp.NewMethod(id)
			if method == nil {
				continue
			}
			methods++
			if id.HasContent() {
				contents++
			}
			if method.ID() != id {
				t.Errorf("%v is %v", id, method.ID())
			}
			if back, err := amqp.UnmarshalMethod(method.AppendTo(nil)); err != nil || back.ID() != id {
				t.Errorf("%v: %v, %v", id, back, err)
			}
		}
	}
	if methods != 64 || contents != 4 {
		t.Errorf("%d methods, %d with contents", methods, contents)
	}
	if amqp.MethodID(0).HasContent() {
		t.Error("a method that there is not has a content")
	}
	if !amqp.CodeFrameError.ClosesConnection() || amqp.CodeNotFound.ClosesConnection() {
		t.Error("what the reply codes close")
	}
}

func TestErrorsSayWhereAndWhy(t *testing.T) {
	var ack amqp.BasicAck
	var header amqp.ContentHeaderView
	frame := func(data string) error {
		_, _, err := amqp.ParseFrame([]byte(data), 4096)
		return err
	}
	method := func(data string) error {
		_, err := amqp.UnmarshalMethod([]byte(data))
		return err
	}
	for _, c := range []struct {
		got   error
		cause error
		text  string
	}{
		{frame("G"), amqp.ErrUnknownFrameType, "amqpcodec: unknown frame type (71) at offset 0"},
		{frame("\x03\x00\x01\x00\x00\x10\x00"), amqp.ErrFrameTooLarge, "amqpcodec: frame is larger than frame_max (4104) at offset 0"},
		{frame("\x08\x00\x00\x00\x00\x00\x00\xcd"), amqp.ErrBadFrameEnd, "amqpcodec: frame does not end with 0xce (0xcd) at offset 7"},
		{method("\x00\x3d\x00\x00"), amqp.ErrUnknownClass, "amqpcodec: unknown class (61) at offset 0"},
		{method("\x00\x3c\x00\xc8"), amqp.ErrUnknownMethod, "amqpcodec: unknown method (200 of class 60) at offset 2"},
		{ack.Parse([]byte("\x00\x3c\x00\x28")), amqp.ErrOtherMethod, "amqpcodec: payload of another method (basic.publish) at offset 0"},
		{ack.Parse([]byte("\x00\x3c\x00")), amqp.ErrTruncated, "amqpcodec: input ends within a value at offset 2"},
		{method("\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x00!"), amqp.ErrTrailingBytes,
			"amqpcodec: bytes behind the last field at offset 13"},
		{header.Parse([]byte("\x00\x3c\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")), amqp.ErrNonZeroWeight,
			"amqpcodec: content weight is not 0 (1) at offset 2"},
		{header.Parse([]byte("\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03")), amqp.ErrUnknownPropertyFlags,
			"amqpcodec: unknown property flags (0x3) at offset 12"},
		{amqp.TableView("\x01kq").Validate(), amqp.ErrUnknownFieldType, "amqpcodec: unknown field type ('q') at offset 2"},
	} {
		var failure *amqp.DecodeError
		if !errors.Is(c.got, c.cause) || !errors.As(c.got, &failure) || c.got.Error() != c.text {
			t.Errorf("%v instead of %s", c.got, c.text)
		}
	}
}

func TestOneFrameIsToldFromMore(t *testing.T) {
	heartbeat := amqp.AppendHeartbeat(nil)
	for data, want := range map[string]error{
		string(heartbeat[:7]):          amqp.ErrTruncated,
		string(heartbeat) + "\x01":     amqp.ErrTrailingBytes,
		"\x09" + string(heartbeat[1:]): amqp.ErrUnknownFrameType,
	} {
		var frame amqp.Frame
		if err := frame.UnmarshalBinary([]byte(data)); !errors.Is(err, want) {
			t.Errorf("%x: %v", data, err)
		}
	}
}

func TestThePropertiesOfNothingAreNone(t *testing.T) {
	header := amqp.ContentHeaderView{ClassID: amqp.ClassBasic}
	if payload := header.AppendTo(nil); len(payload) != 14 || header.Parse(payload) != nil {
		t.Errorf("%x", payload)
	}
	header.Properties = nil
	owned, err := header.Owned()
	if err != nil || owned.Properties.Present() != 0 || header.Properties.Validate() != nil {
		t.Errorf("%v, %v", owned, err)
	}
	for field := range header.Properties.Fields() {
		t.Error(field)
	}
	if _, there := header.Properties.ContentType(); there {
		t.Error("a content type")
	}
	// What was not checked gives no wrong value and no panic.
	for _, data := range []string{"", "\x80", "\xff\xff", "\x80\x00", "\x80\x00\x05ab", "\x00\x40\x01", "\x20\x00\x00", "\x10\x00"} {
		raw := amqp.RawProperties(data)
		raw.ContentType()
		raw.Headers()
		raw.DeliveryMode()
		raw.Timestamp()
		raw.ClusterID()
		for range raw.Fields() {
		}
	}
}
