package main

import (
	"encoding/json"
	"math"
	"net"
	"reflect"
	"strings"
	"testing"

	"courser/amqpcodec"
)

// object is a line of JSON output.
type object = map[string]any

// objects runs a conversation and gives what --json shows of it, without the times.
func objects(t *testing.T, talk func(client, broker *net.TCPConn), arguments ...string) []object {
	t.Helper()
	listener := listen(t)
	running := start(t, listener.Addr().String(), append([]string{"--json"}, arguments...)...)
	client, broker := connect(t, running, listener)
	talk(client, broker)
	eventually(t, "the connection is closed", func() bool { return strings.Contains(running.stdout.String(), `"close"`) })
	running.stop()
	var all []object
	for line := range strings.Lines(running.stdout.String()) {
		var one object
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if one["time"] == nil && one["event"] != "not-shown" {
			t.Errorf("no time: %s", line)
		}
		delete(one, "time")
		all = append(all, one)
	}
	return all
}

func TestJSONHasAnObjectALine(t *testing.T) {
	got := objects(t, func(client, broker *net.TCPConn) { talk(t, client, broker) })
	frame := func(from, kind string, channel, size float64, more object) object {
		one := object{"connection": 1.0, "from": from, "channel": channel, "frame": kind, "size_bytes": size}
		for key, value := range more {
			one[key] = value
		}
		return one
	}
	of := func(name string, fields object) object { return object{"method": name, "fields": fields} }
	want := []object{
		{"connection": 1.0, "event": "open", "text": got[0]["text"]},
		{"connection": 1.0, "event": "protocol-header", "from": "client", "version": "AMQP 0-9-1"},
		frame("broker", "method", 0, 45, of("connection.start", object{
			"version-major": 0.0, "version-minor": 9.0, "server-properties": object{"product": "test"},
			"mechanisms": "PLAIN", "locales": "en_US",
		})),
		frame("client", "method", 0, 37, of("connection.start-ok", object{
			"client-properties": object{}, "mechanism": "PLAIN", "locale": "en_US",
			"response": object{"hidden": `<user "guest", password hidden>`},
		})),
		frame("client", "method", 1, 16, of("queue.declare", object{
			"queue": "jobs", "passive": false, "durable": true, "exclusive": false, "auto-delete": false, "nowait": true,
			"arguments": object{},
		})),
		frame("client", "method", 1, 13, of("basic.publish", object{
			"exchange": "", "routing-key": "jobs", "mandatory": true, "immediate": false,
		})),
		frame("client", "header", 1, 55, object{"class": 60.0, "body_size_bytes": 6.0, "properties": object{
			"content-type": "text/plain", "headers": object{"attempt": 3.0}, "delivery-mode": 2.0, "timestamp": 1609459200.0,
		}}),
		frame("client", "body", 1, 6, object{"body": "hello\n"}),
		frame("broker", "method", 1, 13, of("basic.ack", object{"delivery-tag": 1.0, "multiple": false})),
		frame("broker", "heartbeat", 0, 0, nil),
		frame("broker", "method", 1, 31, of("channel.close", object{
			"reply-code": 404.0, "reply-text": "NOT_FOUND - no queue", "class-id": 0.0, "method-id": 0.0,
		})),
		{"connection": 1.0, "event": "close", "client": object{"frames": 5.0, "bytes": 175.0},
			"broker": object{"frames": 4.0, "bytes": 121.0}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d objects instead of %d: %v", len(got), len(want), got)
	}
	if after, ok := got[3]["after_ms"].(float64); !ok || after <= 0 {
		t.Errorf("start-ok came after %v", got[3]["after_ms"])
	}
	delete(got[3], "after_ms")
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("object %d is\n%v instead of\n%v", i, got[i], want[i])
		}
	}
}

func TestJSONHasAFormForEveryValue(t *testing.T) {
	table := amqpcodec.NewTableWriter(nil)
	for key, value := range map[string]any{
		"bool": true, "int": -1, "float": 1.5, "nan": math.NaN(), "infinite": float32(math.Inf(-1)),
		"decimal": amqpcodec.Decimal{Scale: 2, Digits: 314}, "text": "t", "no text": "\xff", "bytes": []byte{1},
		"array": []any{"a", nil}, "table": map[string]any{"k": uint8(1)},
	} {
		table.Put(key, value)
	}
	table.Put("bool", "the second of its key")
	entries, err := table.Table()
	if err != nil {
		t.Fatal(err)
	}
	declare := method(t, 1, &amqpcodec.QueueDeclareView{Queue: []byte("\xff\xfe"), Arguments: entries})
	broken := method(t, 1, &amqpcodec.QueueDeclareView{Arguments: amqpcodec.TableView("\x01kq")})
	unknown := (&amqpcodec.Frame{Type: amqpcodec.FrameMethod, Channel: 2, Payload: []byte("\x00\x3c\x00\xc8rest")}).AppendTo(nil)
	cut := amqpcodec.AppendBody(nil, 1, []byte("grün"), 0)
	noText := amqpcodec.AppendBody(nil, 1, []byte("\xff\xfe\xfd\xfc"), 0)
	got := objects(t, func(client, broker *net.TCPConn) {
		for _, data := range [][]byte{declare, broken, unknown, cut, noText, []byte("\x01\x00\x01\x00\x00\x00\x00?")} {
			pass(t, client, broker, data)
		}
		end(t, client, broker)
	}, "--body", "3")
	arguments := object{
		"bool": true, "int": -1.0, "float": 1.5, "nan": "NaN", "infinite": "-Inf", "decimal": 3.14, "text": "t",
		"no text": object{"base64": "/w=="}, "bytes": object{"base64": "AQ=="}, "array": []any{"a", nil}, "table": object{"k": 1.0},
	}
	fields := got[1]["fields"].(object)
	if !reflect.DeepEqual(fields["arguments"], arguments) || !reflect.DeepEqual(fields["queue"], object{"base64": "//4="}) {
		t.Errorf("%v", fields)
	}
	if text := got[2]["fields"].(object)["arguments"].(object)["error"]; text != "amqpcodec: unknown field type ('q') at offset 2" {
		t.Errorf("%v", text)
	}
	if got[3]["method"] != "method 200 of class 60" || got[3]["error"] == nil {
		t.Errorf("%v", got[3])
	}
	if !reflect.DeepEqual(got[4]["body"], object{"begins": "gr"}) {
		t.Errorf("%v", got[4])
	}
	if !reflect.DeepEqual(got[5]["body"], object{"begins_base64": "//79"}) {
		t.Errorf("%v", got[5])
	}
	if lost := got[6]; lost["event"] != "not-decoded" || lost["error"] == "" || lost["from"] != "client" || lost["offset"] == nil {
		t.Errorf("%v", lost)
	}
}
