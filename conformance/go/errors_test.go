package conformance

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	noQueue    = "NOT_FOUND - no queue 'NAME' in vhost '/'"
	noExchange = "NOT_FOUND - no exchange 'NAME' in vhost '/'"
	failed     = "PRECONDITION_FAILED - "
)

// exclusive declares an exclusive queue of this name.
func exclusive(t testing.TB, channel *amqp.Channel, name string) {
	t.Helper()
	must(channel.QueueDeclare(name, false, false, true, false, nil))(t)
}

// mistakes that close the channel, with the code and the exact text; NAME in it is the queue's or exchange's name.
var mistakes = []struct {
	what string
	code int
	text string
	do   func(t testing.TB, channel *amqp.Channel, name string) error
}{
	{"inspect a missing queue", 404, noQueue, func(_ testing.TB, channel *amqp.Channel, name string) error {
		_, err := channel.QueueDeclarePassive(name, false, false, false, false, nil)
		return err
	}},
	{"inspect a missing exchange", 404, noExchange, func(_ testing.TB, channel *amqp.Channel, name string) error {
		return channel.ExchangeDeclarePassive(name, "direct", false, false, false, false, nil)
	}},
	{"consume a missing queue", 404, noQueue, func(_ testing.TB, channel *amqp.Channel, name string) error {
		_, err := channel.Consume(name, "", true, false, false, false, nil)
		return err
	}},
	{"get from a missing queue", 404, noQueue, func(_ testing.TB, channel *amqp.Channel, name string) error {
		_, _, err := channel.Get(name, true)
		return err
	}},
	{"bind to a missing exchange", 404, noExchange, func(t testing.TB, channel *amqp.Channel, name string) error {
		return channel.QueueBind(exclusiveQueue(t, channel), "k", name, false, nil)
	}},
	{
		"redeclare as durable", 406,
		failed + "inequivalent arg 'durable' for queue 'NAME' in vhost '/': received 'true' but current is 'false'",
		func(t testing.TB, channel *amqp.Channel, name string) error {
			other := open(t)
			must(other.QueueDeclare(name, false, false, false, false, nil))(t)
			defer other.QueueDelete(name, false, false, false)
			_, err := channel.QueueDeclare(name, true, false, false, false, nil)
			return err
		},
	},
	{
		"delete while in use", 406, failed + "queue 'NAME' in vhost '/' in use",
		func(t testing.TB, channel *amqp.Channel, name string) error {
			exclusive(t, channel, name)
			consume(t, channel, name, true)
			_, err := channel.QueueDelete(name, true, false, false)
			return err
		},
	},
	{
		"delete while not empty", 406, failed + "queue 'NAME' in vhost '/' not empty",
		func(t testing.TB, channel *amqp.Channel, name string) error {
			exclusive(t, channel, name)
			check(t, channel.Confirm(false))
			publishText(t, channel, name, "x")
			_, err := channel.QueueDelete(name, false, true, false)
			return err
		},
	},
	{
		"consume beside an exclusive consumer", 403, "ACCESS_REFUSED - queue 'NAME' in vhost '/' in exclusive use",
		func(t testing.TB, channel *amqp.Channel, name string) error {
			exclusive(t, channel, name)
			must(channel.Consume(name, "first", true, true, false, false, nil))(t)
			_, err := channel.Consume(name, "second", true, false, false, false, nil)
			return err
		},
	},
	{
		"delete a system exchange", 403,
		"ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed",
		func(_ testing.TB, channel *amqp.Channel, _ string) error {
			return channel.ExchangeDelete("amq.topic", false, false)
		},
	},
	{
		"commit without a transaction", 406, failed + "channel is not transactional",
		func(_ testing.TB, channel *amqp.Channel, _ string) error { return channel.TxCommit() },
	},
	{
		"a transaction on a confirming channel", 406, failed + "cannot switch from confirm to tx mode",
		func(t testing.TB, channel *amqp.Channel, _ string) error {
			check(t, channel.Confirm(false))
			return channel.Tx()
		},
	},
}

func TestAMistakeClosesTheChannelWithAReason(t *testing.T) {
	connection := dial(t, amqp.Config{})
	for _, mistake := range mistakes {
		t.Run(mistake.what, func(t *testing.T) {
			channel := must(connection.Channel())(t)
			closed := channel.NotifyClose(make(chan *amqp.Error, 1))
			name := fresh("q")
			text := strings.ReplaceAll(mistake.text, "NAME", name)
			failsWith(t, mistake.do(t, channel, name), mistake.code, text)
			failsWith(t, receive(t, closed), mistake.code, text)
			exclusiveQueue(t, must(connection.Channel())(t))
		})
	}
}

// What has no answer fails later: the reason comes by NotifyClose.
func TestAMistakeWithoutAnswerClosesTheChannelTheSame(t *testing.T) {
	missing := fresh("x")
	for text, do := range map[string]func(channel *amqp.Channel) error{
		"NOT_FOUND - no exchange '" + missing + "' in vhost '/'": func(channel *amqp.Channel) error {
			return channel.Publish(missing, "k", false, false, amqp.Publishing{})
		},
		failed + "unknown delivery tag 42": func(channel *amqp.Channel) error {
			return channel.Ack(42, false)
		},
		failed + "user_id property set to 'a' but authenticated user was 'guest'": func(channel *amqp.Channel) error {
			return channel.Publish("", "q", false, false, amqp.Publishing{UserId: "a"})
		},
	} {
		t.Run(text, func(t *testing.T) {
			channel := open(t)
			closed := channel.NotifyClose(make(chan *amqp.Error, 1))
			check(t, do(channel))
			equal(t, receive(t, closed).Reason, text)
		})
	}
}

func TestMistakesThatCloseTheConnection(t *testing.T) {
	for text, do := range map[string]func(t testing.TB, channel *amqp.Channel) error{
		"NOT_IMPLEMENTED - immediate=true": func(_ testing.TB, channel *amqp.Channel) error {
			return channel.Publish("", "q", false, true, amqp.Publishing{})
		},
		"NOT_IMPLEMENTED - prefetch_size!=0 (10)": func(_ testing.TB, channel *amqp.Channel) error {
			_ = channel.Qos(0, 10, false)
			return nil
		},
		"NOT_ALLOWED - attempt to reuse consumer tag 'twice'": func(t testing.TB, channel *amqp.Channel) error {
			queue := exclusiveQueue(t, channel)
			must(channel.Consume(queue, "twice", true, false, false, false, nil))(t)
			_, _ = channel.Consume(queue, "twice", true, false, false, false, nil)
			return nil
		},
	} {
		t.Run(text, func(t *testing.T) {
			connection := dial(t, amqp.Config{})
			closed := connection.NotifyClose(make(chan *amqp.Error, 1))
			check(t, do(t, must(connection.Channel())(t)))
			equal(t, receive(t, closed).Reason, text)
		})
	}
}
