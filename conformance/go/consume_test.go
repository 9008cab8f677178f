package conformance

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func same(t testing.TB, got, expected []string) {
	t.Helper()
	if !reflect.DeepEqual(got, expected) {
		t.Fatalf("got %v, expected %v", got, expected)
	}
}

func TestDirectTopicAndFanoutRoute(t *testing.T) {
	channel := openConfirming(t)
	for kind, expected := range map[string][]string{
		"direct": {"a.b"}, "topic": {"a.b", "a.c"}, "fanout": {"a.b", "a.c", "b"},
	} {
		exchange, queue := fresh("x"), exclusiveQueue(t, channel)
		check(t, channel.ExchangeDeclare(exchange, kind, false, false, false, false, nil))
		key := map[string]string{"direct": "a.b", "topic": "a.*"}[kind]
		check(t, channel.QueueBind(queue, key, exchange, false, nil))
		for _, key := range []string{"a.b", "a.c", "b"} {
			publish(t, channel, exchange, key, amqp.Publishing{Body: []byte(key)})
		}
		same(t, bodies(t, channel, queue), expected)
		check(t, channel.ExchangeDelete(exchange, false, false))
	}
}

func TestExchangesBindToExchanges(t *testing.T) {
	channel := openConfirming(t)
	source, destination, queue := fresh("x"), fresh("x"), exclusiveQueue(t, channel)
	check(t, channel.ExchangeDeclare(source, "topic", false, false, false, false, nil))
	check(t, channel.ExchangeDeclare(destination, "fanout", false, true, true, false, nil))
	check(t, channel.ExchangeBind(destination, "news.#", source, false, nil))
	check(t, channel.QueueBind(queue, "", destination, false, nil))
	publish(t, channel, source, "news.today", amqp.Publishing{Body: []byte("read")})
	check(t, channel.ExchangeUnbind(destination, "news.#", source, false, nil))
	publish(t, channel, source, "news.today", amqp.Publishing{Body: []byte("not read")})
	same(t, bodies(t, channel, queue), []string{"read"})
	check(t, channel.ExchangeDelete(source, false, false))
}

func TestPrefetchAndAckOfMany(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	publishText(t, channel, queue, "a", "b", "c", "d", "e")
	check(t, channel.Qos(2, 0, false))
	deliveries := consume(t, channel, queue, false)
	receive(t, deliveries)
	second := receive(t, deliveries)
	nothing(t, deliveries)
	check(t, second.Ack(true))
	third, fourth := receive(t, deliveries), receive(t, deliveries)
	nothing(t, deliveries)
	check(t, fourth.Nack(true, true))
	for _, expected := range []string{"c", "d"} {
		again := receive(t, deliveries)
		equal(t, string(again.Body), expected)
		equal(t, again.Redelivered, true)
	}
	equal(t, third.Redelivered, false)
}

func TestRequeueKeepsTheOrder(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	publishText(t, channel, queue, "a", "b", "c", "d")
	var got []amqp.Delivery
	for range 3 {
		message, _, err := channel.Get(queue, false)
		check(t, err)
		got = append(got, message)
	}
	check(t, got[1].Reject(true))
	check(t, got[2].Nack(false, true))
	check(t, got[0].Nack(false, true))
	same(t, bodies(t, channel, queue), []string{"a", "b", "c", "d"})
}

func TestRecoverGivesBack(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	publishText(t, channel, queue, "a", "b")
	deliveries := consume(t, channel, queue, false)
	receive(t, deliveries)
	receive(t, deliveries)
	check(t, channel.Recover(true))
	for _, expected := range []string{"a", "b"} {
		again := receive(t, deliveries)
		equal(t, string(again.Body), expected)
		equal(t, again.Redelivered, true)
	}
}

func TestAConsumerIsToldThatItsQueueIsGone(t *testing.T) {
	channel := open(t)
	queue := fresh("q")
	must(channel.QueueDeclare(queue, false, false, false, false, nil))(t)
	cancelled := channel.NotifyCancel(make(chan string, 1))
	deliveries := must(channel.Consume(queue, "the-consumer", false, false, false, false, nil))(t)
	must(open(t).QueueDelete(queue, false, false, false))(t)
	equal(t, receive(t, cancelled), "the-consumer")
	select {
	case _, ok := <-deliveries:
		equal(t, ok, false)
	case <-time.After(patience):
		t.Fatal("the deliveries do not end")
	}
}

func TestCancelEndsTheDeliveries(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	deliveries := must(channel.Consume(queue, "tag", true, false, false, false, nil))(t)
	publishText(t, channel, queue, "before")
	equal(t, string(receive(t, deliveries).Body), "before")
	check(t, channel.Cancel("tag", false))
	publishText(t, channel, queue, "after")
	if _, ok := <-deliveries; ok {
		t.Fatal("delivered after the cancel")
	}
	same(t, bodies(t, channel, queue), []string{"after"})
}

func TestAnAutoDeleteQueueGoesWithItsLastConsumer(t *testing.T) {
	channel := open(t)
	queue := fresh("q")
	must(channel.QueueDeclare(queue, false, true, false, false, nil))(t)
	for _, tag := range []string{"one", "two"} {
		must(channel.Consume(queue, tag, true, false, false, false, nil))(t)
	}
	check(t, channel.Cancel("one", false))
	must(channel.QueueDeclarePassive(queue, false, true, false, false, nil))(t)
	check(t, channel.Cancel("two", false))
	_, err := channel.QueueDeclarePassive(queue, false, true, false, false, nil)
	failsWith(t, err, 404, "NOT_FOUND - no queue '"+queue+"' in vhost '/'")
}

// A consumer that never reads must not hold up one that does, on another connection or another channel.
func TestAStuckConsumerLeavesTheOthersAlone(t *testing.T) {
	publisher := openConfirming(t)
	stuckQueue, queue := fresh("stuck"), exclusiveQueue(t, publisher)
	stuck := open(t)
	must(stuck.QueueDeclare(stuckQueue, false, true, false, false, nil))(t)
	check(t, stuck.Qos(1, 0, false))
	consume(t, stuck, stuckQueue, false)
	for range 200 {
		publish(t, publisher, "", stuckQueue, amqp.Publishing{Body: make([]byte, 100_000)})
	}
	deliveries := consume(t, publisher, queue, true)
	started := time.Now()
	for number := range 500 {
		publishText(t, publisher, queue, fmt.Sprint(number))
		equal(t, string(receive(t, deliveries).Body), fmt.Sprint(number))
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Fatal("500 round trips took ", took)
	}
}

func TestTwoConsumersShareOneQueue(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	first, second := consume(t, channel, queue, true), consume(t, channel, queue, true)
	for number := range 20 {
		publishText(t, channel, queue, fmt.Sprint(number))
	}
	for range 10 {
		receive(t, first)
		receive(t, second)
	}
	nothing(t, first)
	nothing(t, second)
}

func TestPurgeAndDeleteCount(t *testing.T) {
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	publishText(t, channel, queue, "a", "b", "c")
	equal(t, must(channel.QueueDeclarePassive(queue, false, false, true, false, nil))(t).Messages, 3)
	equal(t, must(channel.QueuePurge(queue, false))(t), 3)
	publishText(t, channel, queue, "d")
	equal(t, must(channel.QueueDelete(queue, false, false, false))(t), 1)
	equal(t, must(channel.QueueDelete(queue, false, false, false))(t), 0)
}
