package conformance

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func waiting(t testing.TB, channel *amqp.Channel, queue string) int {
	t.Helper()
	return must(channel.QueueDeclarePassive(queue, false, false, true, false, nil))(t).Messages
}

func TestACommitMovesAMessage(t *testing.T) {
	channel := open(t)
	source, destination := exclusiveQueue(t, channel), exclusiveQueue(t, channel)
	check(t, channel.Tx())
	check(t, channel.Publish("", source, false, false, amqp.Publishing{Body: []byte("moved")}))
	equal(t, waiting(t, channel, source), 0)
	check(t, channel.TxCommit())

	delivery, ok, err := channel.Get(source, false)
	check(t, err)
	equal(t, ok, true)
	check(t, channel.Publish("", destination, false, false, amqp.Publishing{Body: delivery.Body}))
	check(t, delivery.Ack(false))
	check(t, channel.TxRollback())
	equal(t, waiting(t, channel, destination), 0)

	check(t, channel.Publish("", destination, false, false, amqp.Publishing{Body: delivery.Body}))
	check(t, delivery.Ack(false))
	check(t, channel.TxCommit())
	equal(t, waiting(t, channel, destination), 1)
	equal(t, waiting(t, channel, source), 0)
}

func TestARequestAndItsDirectReply(t *testing.T) {
	const replyTo = "amq.rabbitmq.reply-to"
	server, client := openConfirming(t), open(t)
	requests := exclusiveQueue(t, server)
	asked := consume(t, server, requests, true)
	replies := consume(t, client, replyTo, true)
	check(t, client.Publish("", requests, false, false, amqp.Publishing{
		ReplyTo: replyTo, CorrelationId: "7", Body: []byte("what?"),
	}))
	request := receive(t, asked)
	publish(t, server, "", request.ReplyTo, amqp.Publishing{CorrelationId: request.CorrelationId, Body: []byte("that")})
	reply := receive(t, replies)
	equal(t, reply.CorrelationId+" "+string(reply.Body), "7 that")
}
