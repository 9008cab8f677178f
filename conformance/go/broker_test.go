// Package conformance drives a live broker with amqp091-go, as a Go program would: many goroutines, deferred
// confirms, typed headers. COURSER_TEST_URI says where the broker is.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Nothing that the broker has to do takes longer.
const patience = 20 * time.Second

func brokerURI() string {
	if uri := os.Getenv("COURSER_TEST_URI"); uri != "" {
		return uri
	}
	return "amqp://guest:guest@127.0.0.1:5672/%2F"
}

// fresh is a name that no other test and no earlier run has used.
func fresh(kind string) string {
	return fmt.Sprintf("conformance.%s.%x", kind, rand.Uint64())
}

func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return value
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, got, expected T) {
	t.Helper()
	if got != expected {
		t.Fatalf("got %v, expected %v", got, expected)
	}
}

// dial opens a connection that is closed when the test ends.
func dial(t testing.TB, config amqp.Config) *amqp.Connection {
	t.Helper()
	if config.Heartbeat == 0 {
		config.Heartbeat = 10 * time.Second
	}
	if config.SASL == nil {
		uri := must(amqp.ParseURI(brokerURI()))(t)
		config.SASL = []amqp.Authentication{uri.PlainAuth()}
		config.Vhost = uri.Vhost
	}
	connection := must(amqp.DialConfig(brokerURI(), config))(t)
	t.Cleanup(func() {
		if err := connection.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
			t.Error("close: ", err)
		}
	})
	return connection
}

// open gives a channel on a connection of its own.
func open(t testing.TB) *amqp.Channel {
	t.Helper()
	return must(dial(t, amqp.Config{}).Channel())(t)
}

// openConfirming gives such a channel in confirm mode.
func openConfirming(t testing.TB) *amqp.Channel {
	t.Helper()
	channel := open(t)
	check(t, channel.Confirm(false))
	return channel
}

// exclusiveQueue declares a queue that goes with the channel's connection.
func exclusiveQueue(t testing.TB, channel *amqp.Channel) string {
	t.Helper()
	return must(channel.QueueDeclare("", false, false, true, false, nil))(t).Name
}

// publish sends a message and waits until the broker has taken it. The channel is in confirm mode.
func publish(t testing.TB, channel *amqp.Channel, exchange, key string, message amqp.Publishing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	confirm := must(channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, message))(t)
	acked, err := confirm.WaitContext(ctx)
	check(t, err)
	equal(t, acked, true)
}

func publishText(t testing.TB, channel *amqp.Channel, queue string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		publish(t, channel, "", queue, amqp.Publishing{Body: []byte(body)})
	}
}

// receive is the next value, or the test fails.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value, ok := <-from:
		if !ok {
			t.Fatal("closed instead of a value")
		}
		return value
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// nothing fails when a value comes within a moment.
func nothing[T any](t testing.TB, from <-chan T) {
	t.Helper()
	select {
	case value := <-from:
		t.Fatalf("got %v, expected nothing", value)
	case <-time.After(200 * time.Millisecond):
	}
}

func consume(t testing.TB, channel *amqp.Channel, queue string, autoAck bool) <-chan amqp.Delivery {
	t.Helper()
	return must(channel.Consume(queue, "", autoAck, false, false, false, nil))(t)
}

// bodies takes everything out of a queue.
func bodies(t testing.TB, channel *amqp.Channel, queue string) []string {
	t.Helper()
	taken := []string{}
	for {
		message, ok, err := channel.Get(queue, true)
		check(t, err)
		if !ok {
			return taken
		}
		taken = append(taken, string(message.Body))
	}
}

// failsWith checks an error that the broker has given, code and text.
func failsWith(t testing.TB, err error, code int, text string) {
	t.Helper()
	var reason *amqp.Error
	if !errors.As(err, &reason) {
		t.Fatalf("got %v, expected %d %s", err, code, text)
	}
	equal(t, reason.Code, code)
	equal(t, reason.Reason, text)
}
