package gocodec

import (
	"bytes"
	"testing"
	"time"

	amqp "courser/amqpcodec"
)

func BenchmarkMethod(b *testing.B) {
	run(b, []row{
		encoding("connection.start", &amqp.ConnectionStart{
			VersionMinor:     9,
			ServerProperties: map[string]any{"product": "test", "version": "1.0"},
			Mechanisms:       "PLAIN",
			Locales:          "en_US",
		}),
		encoding("connection.start-ok", &amqp.ConnectionStartOk{
			ClientProperties: map[string]any{"product": "client"},
			Mechanism:        "PLAIN",
			Response:         "\x00guest\x00guest",
			Locale:           "en_US",
		}),
		encoding("basic.publish", &amqp.BasicPublish{Exchange: "test.exchange", RoutingKey: "test.key"}),
		encoding("basic.deliver", &amqp.BasicDeliver{
			ConsumerTag: "consumer-123", DeliveryTag: 1, Exchange: "test.exchange", RoutingKey: "test.key",
		}),
	})
}

// A mapping is a map that is appended as a table.
type mapping map[string]any

func (m mapping) AppendBinary(dst []byte) ([]byte, error) { return amqp.AppendMap(dst, m) }

// An entries function is a table that is appended entry by entry.
type entries func(w *amqp.TableWriter)

func written(name string, fill entries) row {
	return row{name: name, lent: func(b *testing.B) {
		lent := make([]byte, 0, 4096)
		var writer amqp.TableWriter
		for b.Loop() {
			writer.Reset(lent)
			fill(&writer)
			table, err := writer.Table()
			check(b, err)
			raw = table
		}
	}}
}

func two(w *amqp.TableWriter) {
	w.PutString("key1", "value1")
	w.PutInt32("key2", 42)
}

func five(w *amqp.TableWriter) {
	two(w)
	w.PutBool("key3", true)
	w.PutString("key4", "another string")
	w.PutInt32("key5", 999)
}

func ten(w *amqp.TableWriter) {
	five(w)
	w.PutBool("key6", false)
	w.PutString("key7", "more data")
	w.PutInt32("key8", 12345)
	w.PutString("key9", "test value")
	w.PutInt32("key10", 67890)
}

func nested(w *amqp.TableWriter) {
	w.PutString("key1", "value1")
	w.BeginTable("nested")
	w.PutString("inner1", "inner value")
	w.PutInt32("inner2", 100)
	w.EndTable()
	w.PutInt32("key2", 42)
}

func BenchmarkTable(b *testing.B) {
	run(b, []row{
		encoding("encode/2", mapping{"key1": "value1", "key2": int32(42)}),
		encoding("encode/10", mapping{
			"key1": "value1", "key2": int32(42), "key3": true, "key4": "another string", "key5": int32(999),
			"key6": false, "key7": "more data", "key8": int32(12345), "key9": "test value", "key10": int32(67890),
		}),
		encoding("encode/nested", mapping{
			"key1": "value1", "nested": map[string]any{"inner1": "inner value", "inner2": int32(100)}, "key2": int32(42),
		}),
		// The same without a map, which the peer cannot.
		written("write/2", two),
		written("write/10", ten),
		written("write/nested", nested),
		decodeTable(),
		decodeInto(),
		decodeCopy(),
		fiveAssignments(),
	})
}

func encodedTable(fill entries) amqp.TableView {
	var writer amqp.TableWriter
	fill(&writer)
	table, err := writer.Table()
	if err != nil {
		panic(err)
	}
	return table
}

// decodeTable reads five entries: as views, or to a map of owned values.
func decodeTable() row {
	input := encodedTable(five)
	return row{
		name: "decode/5",
		lent: func(b *testing.B) {
			for b.Loop() {
				for one, err := range input.All() {
					check(b, err)
					entry = one
				}
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				var err error
				table, err = input.Map()
				check(b, err)
			}
		},
	}
}

// decodeInto reads to owned values in a map that is lent.
func decodeInto() row {
	input := encodedTable(five)
	return row{name: "decode-into/5", lent: func(b *testing.B) {
		table = map[string]any{}
		for b.Loop() {
			clear(table)
			check(b, input.MapInto(table))
		}
	}}
}

// decodeCopy reads to an owned table: a copy of the bytes, whose entries are views of it.
func decodeCopy() row {
	input := encodedTable(five)
	return row{name: "decode-copy/5", fresh: func(b *testing.B) {
		for b.Loop() {
			owned := amqp.TableView(bytes.Clone(input))
			for one, err := range owned.All() {
				check(b, err)
				entry = one
			}
		}
	}}
}

// fiveAssignments is what decode/5 to a map cannot be faster than: a new map, and five values that need no memory.
func fiveAssignments() row {
	return row{name: "map-of-5", fresh: func(b *testing.B) {
		keys, value := []string{"key1", "key2", "key3", "key4", "key5"}, any(true)
		for b.Loop() {
			table = make(map[string]any)
			for _, key := range keys {
				table[key] = value
			}
		}
	}}
}

func BenchmarkString(b *testing.B) {
	content := string(bytes.Repeat([]byte("a"), 1000))
	const greeting = "hello world"
	short, _ := amqp.AppendShortString(nil, greeting)
	long, _ := amqp.AppendLongString(nil, content)
	lent := make([]byte, 0, 2048)
	decoding := func(name string, input []byte, cut func([]byte) ([]byte, []byte, bool)) row {
		return row{
			name: name,
			lent: func(b *testing.B) {
				for b.Loop() {
					raw, _, _ = cut(input)
				}
			},
			fresh: func(b *testing.B) {
				for b.Loop() {
					view, _, _ := cut(input)
					text = string(view)
				}
			},
		}
	}
	run(b, []row{
		{
			name: "short/encode",
			lent: func(b *testing.B) {
				for b.Loop() {
					raw, _ = amqp.AppendShortString(lent, greeting)
				}
			},
			fresh: func(b *testing.B) {
				for b.Loop() {
					raw, _ = amqp.AppendShortString(nil, greeting)
				}
			},
		},
		decoding("short/decode", short, amqp.CutShortString),
		{
			name: "long/encode",
			lent: func(b *testing.B) {
				for b.Loop() {
					raw, _ = amqp.AppendLongString(lent, content)
				}
			},
			fresh: func(b *testing.B) {
				for b.Loop() {
					raw, _ = amqp.AppendLongString(nil, content)
				}
			},
		},
		decoding("long/decode", long, amqp.CutLongString),
	})
}

func fullProperties() amqp.Properties {
	return amqp.Properties{
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		Headers:         map[string]any{"x-custom": "value"},
		DeliveryMode:    2,
		Priority:        5,
		CorrelationID:   "correlation-123",
		ReplyTo:         "reply-queue",
		Expiration:      "60000",
		MessageID:       "msg-456",
		Timestamp:       time.Unix(1609459200, 0),
	}
}

func BenchmarkHeader(b *testing.B) {
	minimal := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: 1024}
	full := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: 1024, Properties: fullProperties()}
	few := amqp.ContentHeader{ClassID: amqp.ClassBasic, BodySize: 1024, Properties: amqp.Properties{
		ContentType: "application/json", DeliveryMode: 2,
	}}
	input := few.AppendTo(nil)
	run(b, []row{
		encoding("encode/minimal", &minimal),
		encoding("encode/full", &full),
		{
			name: "decode/2",
			lent: func(b *testing.B) {
				var view amqp.ContentHeaderView
				for b.Loop() {
					check(b, view.Parse(input))
					check(b, views.Parse(view.Properties))
				}
			},
			fresh: func(b *testing.B) {
				for b.Loop() {
					check(b, header.UnmarshalBinary(input))
				}
			},
		},
	})
}
