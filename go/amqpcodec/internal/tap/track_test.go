package tap

import (
	"strings"
	"testing"
	"time"

	"courser/amqpcodec"
)

// A conversation is what a tracker is told of one channel, a millisecond apart.
type conversation struct {
	t       *testing.T
	tracker *tracker
	now     time.Time
}

func converse(t *testing.T, options Options) *conversation {
	return &conversation{t: t, tracker: newTracker(&options), now: time.Unix(1, 0)}
}

// say tells a method, and gives whether it is wanted and how long what it answers has waited, in milliseconds.
func (c *conversation) say(from side, method amqpcodec.Method) (wanted bool, after int64) {
	c.t.Helper()
	return c.frame(from, amqpcodec.FrameMethod, method.AppendTo(nil))
}

func (c *conversation) frame(from side, kind amqpcodec.FrameType, payload []byte) (wanted bool, after int64) {
	c.now = c.now.Add(time.Millisecond)
	r := record{time: c.now, connection: 1, from: from, kind: kind, channel: 1, size: uint32(len(payload))}
	wanted = c.tracker.track(&r, payload)
	return wanted, r.after.Milliseconds()
}

// expect is that a method is wanted, and has been waited for so long.
func (c *conversation) expect(from side, method amqpcodec.Method, wanted bool, after int64) {
	c.t.Helper()
	if isWanted, took := c.say(from, method); isWanted != wanted || took != after {
		c.t.Errorf("%s from the %v: wanted %v, after %d ms", method.ID(), from, isWanted, took)
	}
}

func TestAnAnswerIsGivenTheTimeThatItsRequestHasWaited(t *testing.T) {
	c := converse(t, Options{})
	c.expect(client, &amqpcodec.QueueDeclare{Queue: "a"}, true, 0)
	c.expect(client, &amqpcodec.QueueDeclare{Queue: "b", NoWait: true}, true, 0)
	c.expect(client, &amqpcodec.QueueBind{Queue: "a"}, true, 0)
	c.expect(broker, &amqpcodec.QueueDeclareOk{Queue: "a"}, true, 3)
	c.expect(broker, &amqpcodec.QueueBindOk{}, true, 2)
	c.expect(client, &amqpcodec.BasicGet{Queue: "a"}, true, 0)
	c.expect(broker, &amqpcodec.BasicGetEmpty{}, true, 1)
	c.expect(broker, &amqpcodec.ChannelClose{}, true, 0)
	c.expect(client, &amqpcodec.ChannelCloseOk{}, true, 1)
	if c.tracker.held != 0 {
		t.Errorf("%d things are remembered of a closed channel", c.tracker.held)
	}
}

func TestConfirmsAndAcknowledgementsSettleOneOrMany(t *testing.T) {
	c := converse(t, Options{})
	c.expect(client, &amqpcodec.BasicPublish{}, true, 0)
	c.expect(client, &amqpcodec.ConfirmSelect{}, true, 0)
	c.expect(broker, &amqpcodec.ConfirmSelectOk{}, true, 1)
	for range 4 {
		c.expect(client, &amqpcodec.BasicPublish{}, true, 0)
	}
	c.expect(broker, &amqpcodec.BasicAck{DeliveryTag: 2}, true, 3)
	c.expect(broker, &amqpcodec.BasicAck{DeliveryTag: 3, Multiple: true}, true, 5)
	c.expect(broker, &amqpcodec.BasicNack{DeliveryTag: 0, Multiple: true}, true, 3)
	c.expect(broker, &amqpcodec.BasicAck{DeliveryTag: 4}, true, 0)
	c.expect(broker, &amqpcodec.BasicDeliver{DeliveryTag: 7}, true, 0)
	c.expect(client, &amqpcodec.BasicReject{DeliveryTag: 7}, true, 1)
	table := c.tracker.stats.table()
	if !strings.Contains(table, "basic.publish                         5          0          4        3.") {
		t.Errorf("%s", table)
	}
}

func TestNamesSelectMessagesAndTheirAnswers(t *testing.T) {
	c := converse(t, Options{Queue: "orders"})
	c.expect(client, &amqpcodec.BasicQos{}, false, 0)
	c.expect(client, &amqpcodec.QueueDeclare{Queue: "orders"}, true, 0)
	c.expect(broker, &amqpcodec.QueueDeclareOk{Queue: "orders"}, true, 1)
	c.expect(broker, &amqpcodec.BasicQosOk{}, false, 3)
	c.expect(client, &amqpcodec.BasicConsume{}, true, 0)
	c.expect(client, &amqpcodec.BasicConsume{Queue: "others"}, false, 0)
	c.expect(broker, &amqpcodec.BasicConsumeOk{ConsumerTag: "mine"}, true, 2)
	c.expect(broker, &amqpcodec.BasicConsumeOk{ConsumerTag: "theirs"}, false, 2)
	c.expect(broker, &amqpcodec.BasicDeliver{ConsumerTag: "theirs", DeliveryTag: 1}, false, 0)
	if wanted, _ := c.frame(broker, amqpcodec.FrameBody, []byte("no")); wanted {
		t.Error("another queue's body is wanted")
	}
	c.expect(broker, &amqpcodec.BasicDeliver{ConsumerTag: "mine", DeliveryTag: 2}, true, 0)
	for _, kind := range []amqpcodec.FrameType{amqpcodec.FrameHeader, amqpcodec.FrameBody} {
		if wanted, _ := c.frame(broker, kind, []byte("yes")); !wanted {
			t.Errorf("the message's %v is not wanted", kind)
		}
	}
	c.expect(client, &amqpcodec.BasicAck{DeliveryTag: 1}, false, 5)
	c.expect(client, &amqpcodec.BasicAck{DeliveryTag: 2}, true, 4)
	c.expect(client, &amqpcodec.BasicPublish{RoutingKey: "orders"}, true, 0)
	c.expect(client, &amqpcodec.BasicPublish{Exchange: "e", RoutingKey: "orders"}, false, 0)

	c = converse(t, Options{Exchange: "e*", Key: "a/*"})
	c.expect(client, &amqpcodec.BasicPublish{Exchange: "events", RoutingKey: "a/b/c"}, true, 0)
	c.expect(client, &amqpcodec.BasicPublish{Exchange: "events", RoutingKey: "b"}, false, 0)
	c.expect(client, &amqpcodec.ExchangeBind{Source: "x", Destination: "elsewhere", RoutingKey: "a/"}, true, 0)
}

func TestFramesThatWereLeftOutMakeNoWrongFigures(t *testing.T) {
	c := converse(t, Options{})
	c.say(client, &amqpcodec.ConfirmSelect{})
	c.say(broker, &amqpcodec.ConfirmSelectOk{})
	c.say(client, &amqpcodec.BasicPublish{})
	c.tracker.missed()
	c.expect(client, &amqpcodec.BasicPublish{}, true, 0)
	c.expect(broker, &amqpcodec.BasicAck{DeliveryTag: 2, Multiple: true}, true, 0)
}

func TestWhatIsRememberedHasABound(t *testing.T) {
	c := converse(t, Options{})
	for tag := range uint64(heldMax + 10) {
		c.say(broker, &amqpcodec.BasicDeliver{DeliveryTag: tag + 1})
	}
	if c.tracker.held != heldMax {
		t.Errorf("%d things are remembered", c.tracker.held)
	}
	c.tracker.track(&record{connection: 1, event: eventClose}, nil)
	if c.tracker.held != 0 || len(c.tracker.connections) != 0 {
		t.Errorf("%d things are remembered of a closed connection", c.tracker.held)
	}
}

func TestQuantilesAreWithinAnEighth(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	for share, exact := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := h.quantile(share); got < exact-exact/8 || got > exact+exact/8 {
			t.Errorf("%v: %v instead of %v", share, got, exact)
		}
	}
	h.add(1 << 62)
	if got := h.quantile(1); got != 1<<62 {
		t.Errorf("%v", got)
	}
}
