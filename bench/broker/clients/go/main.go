// Load by amqp091-go: each producer and consumer has a connection of its own, and a call for each message.
//
// Prints rates every second as RabbitMQ PerfTest does; `bench/broker/run --load go` measures with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	uri       = flag.String("uri", "amqp://guest:guest@127.0.0.1:5672/", "broker")
	producers = flag.Int("producers", 1, "connections that publish")
	consumers = flag.Int("consumers", 1, "connections that consume")
	size      = flag.Int("size", 1024, "bytes of a body")
	prefetch  = flag.Int("prefetch", 0, "0: automatic acknowledgement")
	confirm   = flag.Int("confirm", 0, "publishes that may wait for their confirm; 0: none are confirmed")
	fanout    = flag.Int("fanout", 0, "queues bound to a fanout exchange; 0: the default exchange")
	queues    = flag.Int("queues", 1, "queues that producers and consumers are spread over")
	rate      = flag.Int("rate", 0, "messages a second of each producer; 0: no limit")
	seconds   = flag.Int("seconds", 30, "how long")
	durable   = flag.Bool("durable", false, "durable queues, persistent messages")

	published, consumed atomic.Int64
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open() *amqp.Channel {
	connection, err := amqp.Dial(*uri)
	check(err)
	channel, err := connection.Channel()
	check(err)
	return channel
}

// topology declares what is published to; it returns the exchange and the names of the queues.
func topology() (exchange string, names []string) {
	channel := open()
	if *fanout > 0 {
		exchange = "bench"
		check(channel.ExchangeDeclare(exchange, "fanout", *durable, false, false, false, nil))
	}
	for number := 1; number <= max(*fanout, *queues); number++ {
		name := fmt.Sprintf("bench-%d", number)
		_, err := channel.QueueDeclare(name, *durable, false, false, false, nil)
		check(err)
		if exchange != "" {
			check(channel.QueueBind(name, "", exchange, false, nil))
		}
		names = append(names, name)
	}
	check(channel.Close())
	return exchange, names
}

func publish(exchange, key string) {
	channel := open()
	message := amqp.Publishing{Body: make([]byte, *size)}
	if *durable {
		message.DeliveryMode = amqp.Persistent
	}
	// Each open publish has a place in it, until its confirm has come.
	window := make(chan struct{}, max(*confirm, 1))
	if *confirm > 0 {
		check(channel.Confirm(false))
		confirms := channel.NotifyPublish(make(chan amqp.Confirmation, *confirm))
		go func() {
			for range confirms {
				<-window
			}
		}()
	}
	start := time.Now()
	for sent := 0; ; sent++ {
		if *confirm > 0 {
			window <- struct{}{}
		}
		if *rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(sent) * time.Second / time.Duration(*rate))))
		}
		check(channel.PublishWithContext(context.Background(), exchange, key, false, false, message))
		published.Add(1)
	}
}

func consume(queue string) {
	channel := open()
	if *prefetch > 0 {
		check(channel.Qos(*prefetch, 0, false))
	}
	deliveries, err := channel.Consume(queue, "", *prefetch == 0, false, false, false, nil)
	check(err)
	for delivery := range deliveries {
		consumed.Add(1)
		if *prefetch > 0 {
			check(delivery.Ack(false))
		}
	}
	log.Fatal("the broker has ended a consumer")
}

func main() {
	flag.Parse()
	exchange, names := topology()
	for number := range *consumers {
		go consume(names[number%len(names)])
	}
	for number := range *producers {
		key := names[number%len(names)]
		if exchange != "" {
			key = ""
		}
		go publish(exchange, key)
	}
	at, sent, received := time.Now(), int64(0), int64(0)
	for end := at.Add(time.Duration(*seconds) * time.Second); at.Before(end); {
		time.Sleep(time.Second)
		now, nowSent, nowReceived := time.Now(), published.Load(), consumed.Load()
		passed := now.Sub(at).Seconds()
		fmt.Printf("published: %.0f msg/s, consumed: %.0f msg/s\n",
			float64(nowSent-sent)/passed, float64(nowReceived-received)/passed)
		at, sent, received = now, nowSent, nowReceived
	}
}
