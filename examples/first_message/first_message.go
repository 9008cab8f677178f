// The first message, with amqp091-go (https://pkg.go.dev/github.com/rabbitmq/amqp091-go).
package main

import (
	"context"
	"fmt"
	"log"

	amqp "github.com/rabbitmq/amqp091-go"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	connection, err := amqp.Dial("amqp://guest:guest@localhost:5672/")
	check(err)
	defer connection.Close()
	channel, err := connection.Channel()
	check(err)
	queue, err := channel.QueueDeclare("", false, false, true, false, nil)
	check(err)
	message := amqp.Publishing{Body: []byte("Hello from Go!")}
	check(channel.PublishWithContext(context.Background(), "", queue.Name, false, false, message))
	deliveries, err := channel.Consume(queue.Name, "", true, false, false, false, nil)
	check(err)
	fmt.Println(string((<-deliveries).Body))
}
