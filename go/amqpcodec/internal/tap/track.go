package tap

import (
	"path"
	"strings"
	"time"

	"courser/amqpcodec"
)

const (
	// heldMax is how many requests, messages and consumers are remembered at the same time, over all connections.
	heldMax = 200_000
	// defaultExchange is what patterns call the exchange without a name, as permissions do.
	defaultExchange = "amq.default"
)

// A tracker follows what is said on each channel: which answer is for which request, and what frames are about. It sees
// every record, in the order in which they passed.
type tracker struct {
	options *Options
	// selects is set when some names are asked for.
	selects     bool
	connections map[uint64]map[uint16]*channel
	held        int
	stats       stats
}

// A channel is what is known of one.
type channel struct {
	// calls are the methods of each side that the other has not answered.
	calls [2][]call
	// publishes wait for a confirm of the broker, deliveries for the client's acknowledgement.
	publishes, deliveries window
	// published is the number of messages since the client asked for confirms; without it there are none.
	published  uint64
	confirming bool
	consumers  map[string]consumer
	// queue is the one that was declared last, which an empty name stands for.
	queue string
	// content says for each side whether the header and the body frames that come belong to what is shown.
	content [2]bool
}

type call struct {
	id     amqpcodec.MethodID
	at     time.Time
	wanted bool
	// queue and noAck are a consumer's or a get's.
	queue string
	noAck bool
}

type consumer struct {
	queue string
	noAck bool
}

func newTracker(options *Options) *tracker {
	return &tracker{
		options: options, selects: options.Queue != "" || options.Exchange != "" || options.Key != "",
		connections: map[uint64]map[uint16]*channel{},
	}
}

// track takes the next record, notes in it how long what it answers has waited, and reports whether it is about what was
// asked for.
func (t *tracker) track(r *record, data []byte) (wanted bool) {
	switch {
	case r.event == eventClose:
		for number := range t.connections[r.connection] {
			t.forget(r.connection, number)
		}
		delete(t.connections, r.connection)
		return true
	case r.event != eventFrame:
		return true
	case r.kind == amqpcodec.FrameMethod:
		return t.method(r, data) || !t.selects
	case r.kind == amqpcodec.FrameHeartbeat || !t.selects:
		return !t.selects
	}
	c := t.connections[r.connection][r.channel]
	return c != nil && c.content[r.from]
}

// missed forgets what can't be known once frames were left out: what waits for an answer, and how many messages were
// published.
func (t *tracker) missed() {
	for _, channels := range t.connections {
		for _, c := range channels {
			t.held -= c.waiting()
			*c = channel{consumers: c.consumers, queue: c.queue}
		}
	}
}

// waiting is how many things of a channel wait for an answer.
func (c *channel) waiting() int {
	return len(c.calls[client]) + len(c.calls[broker]) + len(c.publishes.sent) + len(c.deliveries.sent)
}

func (t *tracker) forget(connection uint64, number uint16) {
	c := t.connections[connection][number]
	t.held -= 1 + c.waiting() + len(c.consumers)
	delete(t.connections[connection], number)
}

// channel is what is known of a channel; nil when no more can be remembered.
func (t *tracker) channel(connection uint64, number uint16) *channel {
	channels := t.connections[connection]
	c := channels[number]
	if c == nil && t.hold() {
		if channels == nil {
			channels = map[uint16]*channel{}
			t.connections[connection] = channels
		}
		c = &channel{}
		channels[number] = c
	}
	return c
}

// hold reports whether one thing more may be remembered.
func (t *tracker) hold() bool {
	if t.held >= heldMax {
		return false
	}
	t.held++
	return true
}

// method follows a method, and reports whether it is about what was asked for.
func (t *tracker) method(r *record, data []byte) bool {
	id, err := amqpcodec.ParseMethodID(data)
	if err != nil {
		return false
	}
	t.stats.saw(id, r.from)
	c := t.channel(r.connection, r.channel)
	if c == nil {
		return false
	}
	said := readFields(data)
	wanted := t.selects && t.matches(c, id, r.from, &said)
	if answered, ok := t.answer(c, id, r); ok {
		wanted = wanted || answered.wanted
		t.learn(c, id, &answered, &said)
		if id == amqpcodec.BasicGetOkID && !answered.noAck {
			t.deliver(c, r, &said, wanted)
		}
	}
	wanted = t.send(c, id, r, &said, wanted) || wanted
	if id.HasContent() {
		c.content[r.from] = wanted
	}
	if id == amqpcodec.ChannelCloseOkID || id == amqpcodec.ConnectionCloseOkID {
		t.forget(r.connection, r.channel)
	}
	return wanted
}

// send notes what waits for an answer from now on, or settles what was waiting.
func (t *tracker) send(c *channel, id amqpcodec.MethodID, r *record, said *fields, wanted bool) bool {
	switch id {
	case amqpcodec.BasicPublishID:
		if c.confirming && r.from == client {
			c.published++
			if t.hold() {
				c.publishes.add(sent{tag: c.published, at: r.time, wanted: wanted})
			}
		}
	case amqpcodec.BasicDeliverID:
		if !c.consumers[said.consumerTag].noAck {
			t.deliver(c, r, said, wanted)
		}
	case amqpcodec.BasicAckID, amqpcodec.BasicNackID, amqpcodec.BasicRejectID:
		return t.settle(c, r, said)
	case amqpcodec.BasicRecoverID, amqpcodec.BasicRecoverAsyncID:
		t.held -= len(c.deliveries.sent)
		c.deliveries = window{}
	case amqpcodec.BasicCancelID:
		if _, known := c.consumers[said.consumerTag]; known {
			delete(c.consumers, said.consumerTag)
			t.held--
		}
	case amqpcodec.ConfirmSelectID:
		c.confirming = true
	}
	if answers[id] != nil && !said.noWait && t.hold() {
		queue := said.queue
		if queue == "" {
			queue = c.queue
		}
		c.calls[r.from] = append(c.calls[r.from], call{id: id, at: r.time, wanted: wanted, queue: queue, noAck: said.noAck})
	}
	if id == amqpcodec.BasicConsumeID && said.consumerTag != "" {
		t.consume(c, said.consumerTag, consumer{said.queue, said.noAck})
	}
	return wanted
}

func (t *tracker) deliver(c *channel, r *record, said *fields, wanted bool) {
	if t.hold() && !c.deliveries.add(sent{tag: said.deliveryTag, at: r.time, wanted: wanted}) {
		t.held--
	}
}

// settle takes an acknowledgement: the broker's is for publishes, the client's for deliveries.
func (t *tracker) settle(c *channel, r *record, said *fields) (wanted bool) {
	waiting, method := &c.publishes, amqpcodec.MethodID(amqpcodec.BasicPublishID)
	if r.from == client {
		waiting, method = &c.deliveries, amqpcodec.BasicDeliverID
	}
	t.held -= waiting.settle(said.deliveryTag, said.multiple, func(s sent) {
		after := r.time.Sub(s.at)
		t.stats.answered(method, after)
		// Of several, the one that has waited longest.
		r.after = max(r.after, after)
		wanted = wanted || s.wanted
	})
	return wanted
}

// answer finds the request that a method answers.
func (t *tracker) answer(c *channel, id amqpcodec.MethodID, r *record) (call, bool) {
	other := client
	if r.from == client {
		other = broker
	}
	for i, request := range c.calls[other] {
		for _, answer := range answers[request.id] {
			if answer == id {
				c.calls[other] = append(c.calls[other][:i], c.calls[other][i+1:]...)
				t.held--
				r.after = r.time.Sub(request.at)
				t.stats.answered(request.id, r.after)
				return request, true
			}
		}
	}
	return call{}, false
}

// learn takes what an answer says of names: that of a queue, and whose a consumer is.
func (t *tracker) learn(c *channel, id amqpcodec.MethodID, request *call, said *fields) {
	switch id {
	case amqpcodec.QueueDeclareOkID:
		c.queue = said.queue
	case amqpcodec.BasicConsumeOkID:
		t.consume(c, said.consumerTag, consumer{request.queue, request.noAck})
	}
}

func (t *tracker) consume(c *channel, tag string, whose consumer) {
	if _, known := c.consumers[tag]; !known && !t.hold() {
		return
	}
	if c.consumers == nil {
		c.consumers = map[string]consumer{}
	}
	if whose.queue == "" {
		whose.queue = c.queue
	}
	c.consumers[tag] = whose
}

// matches reports whether a method names all that was asked for.
func (t *tracker) matches(c *channel, id amqpcodec.MethodID, from side, said *fields) bool {
	// A slash means nothing in a name.
	plain := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	is := func(pattern, name string) bool {
		matches, _ := path.Match(plain(pattern), plain(name))
		return matches
	}
	queue := said.queue
	switch {
	case said.hasQueue && queue == "":
		queue = c.queue
	case id == amqpcodec.BasicPublishID && said.exchange == "":
		queue = said.key
	case said.consumerTag != "" && !said.hasQueue:
		queue = c.consumers[said.consumerTag].queue
	}
	if pattern := t.options.Queue; pattern != "" && (queue == "" || !is(pattern, queue)) {
		return false
	}
	if pattern := t.options.Exchange; pattern != "" {
		exchange := said.exchange
		if said.hasExchange && exchange == "" {
			exchange = defaultExchange
		}
		if !said.hasExchange && said.source == "" && said.destination == "" ||
			!is(pattern, exchange) && !is(pattern, said.source) && !is(pattern, said.destination) {
			return false
		}
	}
	return t.options.Key == "" || said.hasKey && is(t.options.Key, said.key)
}
