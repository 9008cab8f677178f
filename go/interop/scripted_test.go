package interop

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"courser/amqpcodec"
)

// A scripted broker knows one queue, which it delivers in order, and answers what amqp091-go asks in these tests. It is
// written with the module under test: what it reads and writes, a client of other people's understands.
type scripted struct {
	reader *amqpcodec.Reader
	writer *amqpcodec.Writer
	parser amqpcodec.MethodParser

	// publishing is the message whose frames are coming in, consumers those who get it.
	publishing message
	waiting    []message
	consumer   string
	published  uint64
	delivered  uint64
	confirms   bool
}

// A message is what was published.
type message struct {
	exchange, routingKey string
	header               amqpcodec.ContentHeader
	body                 []byte
}

// serveScripted plays a broker at a port of its own, and gives its address.
func serveScripted(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				broker := scripted{reader: amqpcodec.NewReader(connection), writer: amqpcodec.NewWriter(connection)}
				if err := broker.serve(); err != nil && !errors.Is(err, errClosed) {
					t.Error(err)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// errClosed ends a conversation that was closed in good order.
var errClosed = errors.New("closed")

func (b *scripted) serve() error {
	if header, err := b.reader.ReadProtocolHeader(); err != nil || string(header[:]) != amqpcodec.ProtocolHeader {
		return fmt.Errorf("protocol header %q, %w", header, err)
	}
	start := amqpcodec.ConnectionStart{VersionMinor: 9, Mechanisms: "PLAIN AMQPLAIN", Locales: "en_US", ServerProperties: map[string]any{
		"product": "scripted", "capabilities": map[string]any{"publisher_confirms": true, "basic.nack": true},
	}}
	if err := errors.Join(b.writer.WriteMethod(0, &start), b.writer.Flush()); err != nil {
		return err
	}
	for frame, err := range b.reader.All() {
		if err == nil {
			err = b.take(frame)
		}
		if err == nil && b.reader.Buffered() == 0 {
			err = b.writer.Flush()
		}
		if err != nil {
			return errors.Join(err, b.writer.Flush())
		}
	}
	return nil
}

func (b *scripted) take(frame amqpcodec.Frame) error {
	switch frame.Type {
	case amqpcodec.FrameMethod:
		method, err := b.parser.Parse(frame.Payload)
		if err != nil {
			return err
		}
		return b.method(frame.Channel, method)
	case amqpcodec.FrameHeader:
		b.publishing.body = nil
		if err := b.publishing.header.UnmarshalBinary(frame.Payload); err != nil {
			return err
		}
		return b.complete(frame.Channel)
	case amqpcodec.FrameBody:
		b.publishing.body = append(b.publishing.body, frame.Payload...)
		return b.complete(frame.Channel)
	}
	return nil
}

// answers are the replies that need no thought.
var answers = map[amqpcodec.MethodID]amqpcodec.Method{
	amqpcodec.ConnectionStartOkID: &amqpcodec.ConnectionTune{ChannelMax: 100, FrameMax: 131072},
	amqpcodec.ConnectionOpenID:    &amqpcodec.ConnectionOpenOk{},
	amqpcodec.ChannelOpenID:       &amqpcodec.ChannelOpenOk{},
	amqpcodec.ChannelCloseID:      &amqpcodec.ChannelCloseOk{},
	amqpcodec.ExchangeDeclareID:   &amqpcodec.ExchangeDeclareOk{},
	amqpcodec.QueueBindID:         &amqpcodec.QueueBindOk{},
	amqpcodec.BasicQosID:          &amqpcodec.BasicQosOk{},
	amqpcodec.ConfirmSelectID:     &amqpcodec.ConfirmSelectOk{},
	amqpcodec.QueueDeleteID:       &amqpcodec.QueueDeleteOk{},
	amqpcodec.BasicCancelID:       &amqpcodec.BasicCancelOk{},
}

func (b *scripted) method(channel uint16, method amqpcodec.MethodView) error {
	if answer := answers[method.ID()]; answer != nil {
		b.confirms = b.confirms || method.ID() == amqpcodec.ConfirmSelectID
		return b.writer.WriteMethod(channel, answer)
	}
	switch m := method.(type) {
	case *amqpcodec.ConnectionTuneOk:
		b.reader.SetFrameMax(m.FrameMax)
		b.writer.SetFrameMax(m.FrameMax)
	case *amqpcodec.ConnectionCloseView:
		return errors.Join(b.writer.WriteMethod(channel, &amqpcodec.ConnectionCloseOk{}), errClosed)
	case *amqpcodec.QueueDeclareView:
		if m.Passive {
			return b.writer.WriteMethod(channel, &amqpcodec.ChannelClose{
				ReplyCode: 404, ReplyText: "NOT_FOUND - nothing is declared here", ClassID: 50, MethodID: 10,
			})
		}
		return b.writer.WriteMethod(channel, &amqpcodec.QueueDeclareOkView{Queue: m.Queue})
	case *amqpcodec.BasicConsumeView:
		b.consumer = string(m.ConsumerTag)
		return errors.Join(b.writer.WriteMethod(channel, &amqpcodec.BasicConsumeOkView{ConsumerTag: m.ConsumerTag}), b.deliver(channel))
	case *amqpcodec.BasicPublishView:
		owned := m.Owned()
		b.publishing = message{exchange: owned.Exchange, routingKey: owned.RoutingKey}
	case *amqpcodec.BasicAck, *amqpcodec.ChannelCloseOk:
	default:
		return fmt.Errorf("%v is not in the script", method.ID())
	}
	return nil
}

// complete confirms the message that is coming in once it is all there, and delivers it.
func (b *scripted) complete(channel uint16) error {
	if uint64(len(b.publishing.body)) < b.publishing.header.BodySize {
		return nil
	}
	b.waiting = append(b.waiting, b.publishing)
	b.published++
	if b.confirms {
		if err := b.writer.WriteMethod(channel, &amqpcodec.BasicAck{DeliveryTag: b.published}); err != nil {
			return err
		}
	}
	return b.deliver(channel)
}

func (b *scripted) deliver(channel uint16) error {
	for b.consumer != "" && len(b.waiting) > 0 {
		next := b.waiting[0]
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.delivered++
		deliver := amqpcodec.BasicDeliver{
			ConsumerTag: b.consumer, DeliveryTag: b.delivered, Exchange: next.exchange, RoutingKey: next.routingKey,
		}
		if err := b.writer.WriteContent(channel, &deliver, &next.header.Properties, next.body); err != nil {
			return err
		}
	}
	return nil
}
