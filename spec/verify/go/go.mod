module courser/spec/verify

go 1.23

require github.com/rabbitmq/amqp091-go v1.16.0

replace github.com/rabbitmq/amqp091-go => ../.cache/amqp091-go
