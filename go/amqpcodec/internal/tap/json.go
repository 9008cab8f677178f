package tap

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"courser/amqpcodec"
)

// jsonFormat shows a record as an object on a line of its own.
type jsonFormat struct {
	options *Options
}

// line has the members of all objects; docs/amqptap.md says which come when.
type line struct {
	Time       string         `json:"time,omitempty"`
	Connection uint64         `json:"connection,omitempty"`
	Event      string         `json:"event,omitempty"`
	From       string         `json:"from,omitempty"`
	Channel    *uint16        `json:"channel,omitempty"`
	Frame      string         `json:"frame,omitempty"`
	Size       *uint32        `json:"size_bytes,omitempty"`
	Method     string         `json:"method,omitempty"`
	Fields     map[string]any `json:"fields,omitempty"`
	Class      *uint16        `json:"class,omitempty"`
	BodySize   *uint64        `json:"body_size_bytes,omitempty"`
	Properties map[string]any `json:"properties,omitempty"`
	Body       any            `json:"body,omitempty"`
	Version    string         `json:"version,omitempty"`
	Offset     *int64         `json:"offset,omitempty"`
	Error      string         `json:"error,omitempty"`
	Text       string         `json:"text,omitempty"`
	Frames     int64          `json:"frames,omitempty"`
	AfterMS    float64        `json:"after_ms,omitempty"`
	Client     *passed        `json:"client,omitempty"`
	Broker     *passed        `json:"broker,omitempty"`
}

// passed is what came from one side.
type passed struct {
	Frames int64 `json:"frames"`
	Bytes  int64 `json:"bytes"`
}

var eventNames = map[event]string{
	eventProtocolHeader: "protocol-header", eventOpen: "open", eventUnreachable: "unreachable", eventLost: "not-decoded",
	eventGap:   "gap",
	eventClose: "close",
}

func (f *jsonFormat) missed(dst []byte, frames int64) []byte {
	return appendLine(dst, &line{Event: "not-shown", Frames: frames})
}

func appendLine(dst []byte, l *line) []byte {
	encoded, err := json.Marshal(l)
	if err != nil {
		// Nothing above has a type or a number that JSON lacks.
		encoded = []byte(`{"error":` + strconv.Quote(err.Error()) + `}`)
	}
	return append(append(dst, encoded...), '\n')
}

func (f *jsonFormat) record(dst []byte, r *record, data []byte) []byte {
	l := line{Time: r.time.UTC().Format(time.RFC3339Nano), Connection: r.connection, Event: eventNames[r.event]}
	switch r.event {
	case eventFrame:
		f.frame(&l, r, data)
		l.AfterMS = float64(r.after.Microseconds()) / 1000
	case eventGap:
		l.From, l.Offset, l.Error = r.from.String(), &r.offset, r.text
	case eventProtocolHeader:
		l.From, l.Version = r.from.String(), protocolVersion(data)
	case eventLost:
		l.From, l.Offset, l.Error = r.from.String(), &r.offset, r.text
	case eventUnreachable:
		l.Error = r.text
	case eventOpen:
		l.Text = r.text
	case eventClose:
		l.Client = &passed{r.totals.frames[client], r.totals.bytes[client]}
		l.Broker = &passed{r.totals.frames[broker], r.totals.bytes[broker]}
	}
	return appendLine(dst, &l)
}

func (f *jsonFormat) frame(l *line, r *record, data []byte) {
	l.From, l.Channel, l.Frame, l.Size = r.from.String(), &r.channel, r.kind.String(), &r.size
	whole := len(data) == int(r.size)
	switch r.kind {
	case amqpcodec.FrameMethod:
		f.method(l, data, whole)
	case amqpcodec.FrameHeader:
		f.header(l, data, whole)
	case amqpcodec.FrameBody:
		if f.options.BodyMax > 0 && r.size > 0 {
			l.Body = jsonText(data, !whole)
		}
	}
}

// tooLarge is the error of a payload of which not all was kept.
const tooLarge = "too large to be shown"

func (f *jsonFormat) method(l *line, data []byte, whole bool) {
	id, err := amqpcodec.ParseMethodID(data)
	if l.Method = id.String(); err != nil {
		l.Error = err.Error()
		return
	}
	if !whole {
		l.Error = tooLarge
		return
	}
	l.Fields = map[string]any{}
	for field, err := range amqpcodec.ParseFields(data) {
		if err != nil {
			l.Error = err.Error()
			return
		}
		if hidden, ok := secretOf(id, field, f.options.Secrets); ok {
			l.Fields[field.Name] = map[string]any{"hidden": hidden.String()}
			continue
		}
		l.Fields[field.Name] = jsonField(field)
	}
}

func (f *jsonFormat) header(l *line, data []byte, whole bool) {
	if !whole {
		l.Error = tooLarge
		return
	}
	var header amqpcodec.ContentHeaderView
	if err := header.Parse(data); err != nil {
		l.Error = err.Error()
		return
	}
	l.Class, l.BodySize, l.Properties = &header.ClassID, &header.BodySize, map[string]any{}
	for property := range header.Properties.Fields() {
		l.Properties[property.Name] = jsonField(property)
	}
}

// jsonField is a field's value in types that JSON has.
func jsonField(field amqpcodec.Field) any {
	switch field.Kind {
	case amqpcodec.KindBit:
		return field.Bool()
	case amqpcodec.KindShortString, amqpcodec.KindLongString:
		return jsonText(field.Bytes(), false)
	case amqpcodec.KindTable:
		if err := field.Table().Validate(); err != nil {
			return map[string]any{"error": err.Error()}
		}
		return jsonTable(field.Table())
	default:
		return field.Uint64()
	}
}

// jsonText is a string of JSON when the bytes are text, else an object with the bytes; cut says that there were more.
func jsonText(data []byte, cut bool) any {
	text := data
	if cut {
		text = wholeRunes(data)
	}
	switch {
	case utf8.Valid(text) && !cut:
		return string(text)
	case utf8.Valid(text):
		return map[string]any{"begins": string(text)}
	case cut:
		return map[string]any{"begins_base64": data}
	default:
		return map[string]any{"base64": data}
	}
}

// jsonTable is an object of entries that are known to be well-formed; of a key that comes twice the first value.
func jsonTable(table amqpcodec.TableView) map[string]any {
	object := map[string]any{}
	for entry, err := range table.All() {
		if err != nil {
			break
		}
		if _, there := object[string(entry.Key)]; !there {
			object[string(entry.Key)] = jsonValue(entry.Value)
		}
	}
	return object
}

func jsonValue(value amqpcodec.Value) any {
	switch value.Tag() {
	case amqpcodec.TagBool:
		truth, _ := value.Bool()
		return truth
	case amqpcodec.TagFloat32, amqpcodec.TagFloat64:
		number, _ := value.Float64()
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return strconv.FormatFloat(number, 'g', -1, 64)
		}
		return number
	case amqpcodec.TagDecimal:
		number, _ := value.Decimal()
		return json.Number(number.String())
	case amqpcodec.TagLongString:
		return jsonText(value.Bytes(), false)
	case amqpcodec.TagBytes:
		return map[string]any{"base64": value.Bytes()}
	case amqpcodec.TagTimestamp:
		seconds, _ := value.Timestamp()
		return seconds
	case amqpcodec.TagTable:
		table, _ := value.Table()
		return jsonTable(table)
	case amqpcodec.TagArray:
		array, _ := value.Array()
		elements := []any{}
		for element, err := range array.All() {
			if err != nil {
				break
			}
			elements = append(elements, jsonValue(element))
		}
		return elements
	case amqpcodec.TagVoid:
		return nil
	default:
		number, _ := value.Int64()
		return number
	}
}
