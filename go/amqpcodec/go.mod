module courser/amqpcodec

go 1.24
