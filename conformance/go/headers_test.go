package conformance

import (
	"math"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Every type that amqp091-go has, at its bounds. Go's types tell the widths apart, so a changed tag would show.
var headers = amqp.Table{
	"bool":          true,
	"byte":          byte(255),
	"int8 least":    int8(math.MinInt8),
	"int16 least":   int16(math.MinInt16),
	"int16 most":    int16(math.MaxInt16),
	"uint16":        uint16(math.MaxUint16),
	"int32 least":   int32(math.MinInt32),
	"int32 most":    int32(math.MaxInt32),
	"uint32":        uint32(math.MaxUint32),
	"int64 least":   int64(math.MinInt64),
	"int64 most":    int64(math.MaxInt64),
	"float32":       float32(1.5),
	"float64":       math.Pi,
	"float64 least": math.SmallestNonzeroFloat64,
	"decimal":       amqp.Decimal{Scale: 2, Value: 31415},
	"text":          "grüße 🐇",
	"empty text":    "",
	"bytes":         []byte{0, 255, 0},
	"time":          time.Unix(1609459200, 0),
	"void":          nil,
	"array":         []any{int32(1), "two", nil, []any{true, amqp.Table{"deep": int64(-1)}}},
	"table":         amqp.Table{"a": int8(1), "b": amqp.Table{"c": "deep"}},
	"empty table":   amqp.Table{},
}

func roundTrip(t *testing.T, channel *amqp.Channel, queue string, message amqp.Publishing) amqp.Delivery {
	t.Helper()
	publish(t, channel, "", queue, message)
	got, ok, err := channel.Get(queue, true)
	check(t, err)
	equal(t, ok, true)
	return got
}

func TestHeadersOfEveryTypeComeBack(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	got := roundTrip(t, channel, queue, amqp.Publishing{Headers: headers})
	if !reflect.DeepEqual(got.Headers, headers) {
		t.Fatalf("got %v, expected %v", got.Headers, headers)
	}
	for name, value := range headers {
		t.Run(name, func(t *testing.T) {
			alone := amqp.Table{name: value}
			got := roundTrip(t, channel, queue, amqp.Publishing{Headers: alone}).Headers
			if !reflect.DeepEqual(got, alone) {
				t.Fatalf("got %#v, expected %#v", got, alone)
			}
		})
	}
}

func TestPropertiesComeBack(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	got := roundTrip(t, channel, queue, amqp.Publishing{
		ContentType: "application/json", ContentEncoding: "gzip", Headers: amqp.Table{"k": "v"}, DeliveryMode: amqp.Persistent,
		Priority: 9, CorrelationId: "c-1", ReplyTo: "answers", Expiration: "60000", MessageId: "m-1",
		Timestamp: time.Unix(1609459200, 0), Type: "created", UserId: "guest", AppId: "conformance", Body: []byte("{}"),
	})
	equal(t, got.ContentType, "application/json")
	equal(t, got.ContentEncoding, "gzip")
	equal(t, got.Headers["k"], any("v"))
	equal(t, got.DeliveryMode, amqp.Persistent)
	equal(t, got.Priority, 9)
	equal(t, got.CorrelationId, "c-1")
	equal(t, got.ReplyTo, "answers")
	equal(t, got.Expiration, "60000")
	equal(t, got.MessageId, "m-1")
	equal(t, got.Timestamp.Unix(), 1609459200)
	equal(t, got.Type, "created")
	equal(t, got.UserId, "guest")
	equal(t, got.AppId, "conformance")
	equal(t, string(got.Body), "{}")
}

func TestHeadersExchangeTellsValuesApart(t *testing.T) {
	channel := openConfirming(t)
	exchange := fresh("x")
	check(t, channel.ExchangeDeclare(exchange, "headers", false, false, false, false, nil))
	defer channel.ExchangeDelete(exchange, false, false)
	all, any := exclusiveQueue(t, channel), exclusiveQueue(t, channel)
	for match, queue := range map[string]string{"all": all, "any": any} {
		arguments := amqp.Table{"x-match": match, "format": "pdf", "pages": int32(7)}
		check(t, channel.QueueBind(queue, "", exchange, false, arguments))
	}
	for body, headers := range map[string]amqp.Table{
		"both": {"format": "pdf", "pages": int32(7)}, "one": {"format": "pdf", "pages": int32(8)},
		"none": {"format": "txt"}, "empty": {},
	} {
		publish(t, channel, exchange, "", amqp.Publishing{Headers: headers, Body: []byte(body)})
	}
	equal(t, len(bodies(t, channel, all)), 1)
	equal(t, len(bodies(t, channel, any)), 2)
}
