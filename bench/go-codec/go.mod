module courser/bench/go-codec

go 1.25.0

require (
	courser/amqpcodec v0.0.0
	github.com/rabbitmq/amqp091-go v1.16.0
)

replace courser/amqpcodec => ../../go/amqpcodec
