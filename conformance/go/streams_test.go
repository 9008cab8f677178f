package conformance

import (
	"context"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Ten readers of one stream, at different places and speeds, while it grows: each gets everything from where it
// began, in order, with the right offsets.
func TestManyReadersOfAStream(t *testing.T) {
	const before, after = 3000, 3000
	name := fresh("stream")
	channel := openConfirming(t)
	arguments := amqp.Table{"x-queue-type": "stream"}
	must(channel.QueueDeclare(name, true, false, false, false, arguments))(t)
	defer channel.QueueDelete(name, false, false, false)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fill := func(from, to int) {
		var last *amqp.DeferredConfirmation
		for number := from; number < to; number++ {
			message := amqp.Publishing{Body: fmt.Append(nil, number)}
			last = must(channel.PublishWithDeferredConfirmWithContext(ctx, "", name, false, false, message))(t)
		}
		equal(t, must(last.WaitContext(ctx))(t), true)
	}
	fill(0, before)
	done := make(chan error, 10)
	for reader := range 10 {
		start := reader * 300
		own := open(t)
		check(t, own.Qos(1+reader*20, 0, false))
		offset := amqp.Table{"x-stream-offset": int64(start)}
		deliveries := must(own.Consume(name, "", false, false, false, false, offset))(t)
		go func() {
			for expected := start; expected < before+after; expected++ {
				delivery := <-deliveries
				if got := string(delivery.Body); got != fmt.Sprint(expected) || delivery.Redelivered {
					done <- fmt.Errorf("%q instead of %d", got, expected)
					return
				}
				if got := delivery.Headers["x-stream-offset"]; got != int64(expected) {
					done <- fmt.Errorf("the offset %v instead of %d", got, expected)
					return
				}
				if err := delivery.Ack(false); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	fill(before, before+after)
	for range 10 {
		select {
		case err := <-done:
			check(t, err)
		case <-ctx.Done():
			t.Fatal("not in time")
		}
	}
}
