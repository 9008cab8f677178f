package conformance

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestConfirmsInFlight(t *testing.T) {
	const count = 5000
	channel := openConfirming(t)
	queue := exclusiveQueue(t, channel)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var confirms []*amqp.DeferredConfirmation
	for number := range count {
		message := amqp.Publishing{Body: fmt.Append(nil, number)}
		confirm := must(channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, message))(t)
		equal(t, confirm.DeliveryTag, uint64(number+1))
		confirms = append(confirms, confirm)
	}
	for _, confirm := range confirms {
		acked, err := confirm.WaitContext(ctx)
		check(t, err)
		equal(t, acked, true)
	}
	for number, body := range bodies(t, channel, queue) {
		equal(t, body, fmt.Sprint(number))
	}
}

// Many publishers and consumers at once; nothing is lost or doubled, and each publisher's order is kept.
func TestManyPublishersAndConsumers(t *testing.T) {
	const publishers, consumers, each = 10, 5, 1000
	queue := fresh("busy")
	owner := open(t)
	must(owner.QueueDeclare(queue, false, false, false, false, nil))(t)
	defer owner.QueueDelete(queue, false, false, false)

	type numbered struct{ publisher, number int }
	got := make(chan numbered, publishers*each+1)
	for range consumers {
		channel := open(t)
		check(t, channel.Qos(50, 0, false))
		deliveries := consume(t, channel, queue, false)
		go func() {
			last := map[int]int{}
			for delivery := range deliveries {
				var message numbered
				if _, err := fmt.Sscan(string(delivery.Body), &message.publisher, &message.number); err != nil {
					t.Error(err)
				}
				if before, ok := last[message.publisher]; ok && before >= message.number {
					t.Errorf("publisher %d: %d after %d", message.publisher, message.number, before)
				}
				last[message.publisher] = message.number
				if message.number%10 == 9 {
					_ = delivery.Ack(true)
				}
				got <- message
			}
		}()
	}
	var group sync.WaitGroup
	for publisher := range publishers {
		channel := openConfirming(t)
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var last *amqp.DeferredConfirmation
			for number := range each {
				body := fmt.Appendf(nil, "%d %d", publisher, number)
				var err error
				last, err = channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, amqp.Publishing{Body: body})
				if err != nil {
					t.Error(err)
					return
				}
			}
			if acked, err := last.WaitContext(ctx); err != nil || !acked {
				t.Error("not confirmed: ", err)
			}
		})
	}
	seen := map[numbered]bool{}
	for range publishers * each {
		message := receive(t, got)
		if seen[message] {
			t.Fatal("twice: ", message)
		}
		seen[message] = true
	}
	group.Wait()
	nothing(t, got)
}

func TestAMandatoryMessageComesBackBeforeItsConfirm(t *testing.T) {
	channel := openConfirming(t)
	returns := channel.NotifyReturn(make(chan amqp.Return, 100))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for number := range 100 {
		message := amqp.Publishing{Body: fmt.Append(nil, number), MessageId: "kept"}
		confirm := must(channel.PublishWithDeferredConfirmWithContext(ctx, "amq.direct", "nowhere", true, false, message))(t)
		acked, err := confirm.WaitContext(ctx)
		check(t, err)
		equal(t, acked, true)
		// It is there already: no waiting.
		select {
		case returned := <-returns:
			equal(t, returned.ReplyCode, 312)
			equal(t, returned.ReplyText, "NO_ROUTE")
			equal(t, returned.Exchange, "amq.direct")
			equal(t, returned.RoutingKey, "nowhere")
			equal(t, returned.MessageId, "kept")
			equal(t, string(returned.Body), fmt.Sprint(number))
		default:
			t.Fatal("confirmed before it was returned")
		}
	}
}

func patterned(size int) []byte {
	body := make([]byte, size)
	for index := range body {
		body[index] = byte(index % 251)
	}
	return body
}

func TestBodiesOfAnySize(t *testing.T) {
	for _, frameSize := range []int{4096, 131072} {
		connection := dial(t, amqp.Config{FrameSize: frameSize})
		channel := must(connection.Channel())(t)
		check(t, channel.Confirm(false))
		queue := exclusiveQueue(t, channel)
		deliveries := consume(t, channel, queue, true)
		for _, size := range []int{0, 1, 4087, 4088, 4089, 131064, 131065, 1 << 20, 10 << 20} {
			t.Run(fmt.Sprintf("%d bytes in frames of %d", size, frameSize), func(t *testing.T) {
				publish(t, channel, "", queue, amqp.Publishing{Body: patterned(size)})
				if !bytes.Equal(receive(t, deliveries).Body, patterned(size)) {
					t.Fatal("another body came back")
				}
			})
		}
	}
}

func TestAMessageAboveTheLimitIsRefused(t *testing.T) {
	channel := open(t)
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	check(t, channel.Publish("", "q", false, false, amqp.Publishing{Body: make([]byte, 16<<20+1)}))
	failsWith(t, receive(t, closed), 406, failed+"message size 16777217 is larger than configured max size 16777216")
}
