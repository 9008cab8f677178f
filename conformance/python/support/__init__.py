"""What the Python tests share: the broker under test, and a bare AMQP client for what pika cannot send."""
