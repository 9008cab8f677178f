// Command clusterload publishes with confirms and consumes through the nodes of a cluster, and connects again whenever a
// connection is lost. When its standard input ends, it takes what is left and says what was lost.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const queue = "nemesis-go"

// connect opens a channel through the next address that lets it in.
func connect(addresses []string, attempt int) (*amqp.Connection, *amqp.Channel, error) {
	config := amqp.Config{Heartbeat: 5 * time.Second, Dial: amqp.DefaultDial(5 * time.Second)}
	connection, err := amqp.DialConfig("amqp://guest:guest@"+addresses[attempt%len(addresses)], config)
	if err != nil {
		return nil, nil, err
	}
	channel, err := connection.Channel()
	if err == nil {
		_, err = channel.QueueDeclare(queue, true, false, false, false, nil)
	}
	if err != nil {
		connection.Close()
		return nil, nil, err
	}
	return connection, channel, nil
}

// publish sends numbers until done, and returns those that were confirmed.
func publish(addresses []string, done *atomic.Bool) map[int]bool {
	confirmed := map[int]bool{}
	number := 0
	for attempt := 0; !done.Load(); attempt++ {
		connection, channel, err := connect(addresses, attempt)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if channel.Confirm(false) == nil {
			for !done.Load() {
				number++
				within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(number))}
				confirm, err := channel.PublishWithDeferredConfirmWithContext(within, "", queue, false, false, message)
				if err == nil {
					var acked bool
					acked, err = confirm.WaitContext(within)
					if err == nil && acked {
						confirmed[number] = true
					}
				}
				cancel()
				if err != nil || channel.IsClosed() {
					break
				}
			}
		}
		connection.Close()
	}
	return confirmed
}

// consume takes and acknowledges until done and nothing has come for a while.
func consume(addresses []string, done *atomic.Bool) map[int]bool {
	taken := map[int]bool{}
	quietSince := time.Now()
	for attempt := 1; ; attempt++ {
		connection, channel, err := connect(addresses, attempt)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
		for err == nil {
			select {
			case delivery, open := <-deliveries:
				if !open {
					err = io.EOF
					break
				}
				if number, bad := strconv.Atoi(string(delivery.Body)); bad == nil {
					taken[number] = true
				}
				quietSince = time.Now()
				err = delivery.Ack(false)
			case <-time.After(200 * time.Millisecond):
				if done.Load() && time.Since(quietSince) > 5*time.Second {
					connection.Close()
					return taken
				}
			}
		}
		connection.Close()
	}
}

func main() {
	addresses := os.Args[1:]
	var published, ended atomic.Bool
	confirmed, taken := make(chan map[int]bool), make(chan map[int]bool)
	go func() { confirmed <- publish(addresses, &published) }()
	go func() { taken <- consume(addresses, &ended) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	published.Store(true)
	sure := <-confirmed
	ended.Store(true)
	came := <-taken
	lost := 0
	for number := range sure {
		if !came[number] {
			lost++
		}
	}
	fmt.Printf("%d confirmed, %d taken, %d lost\n", len(sure), len(came), lost)
	if lost > 0 || len(sure) == 0 {
		os.Exit(1)
	}
}
