# frozen_string_literal: true

# Publishes messages with Bunny and consumes them, all with properties that are compared: ruby bunny_messages.rb [MESSAGES]

require "bunny"

messages = Integer(ARGV.fetch(0, "1000000"))
uri = ENV.fetch("COURSER_TEST_URI", "amqp://guest:guest@127.0.0.1:5672/%2F")
connection = Bunny.new(uri, automatically_recover: false, log_level: Logger::FATAL).start
consumer = Bunny.new(uri, automatically_recover: false, log_level: Logger::FATAL).start
started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

queue = consumer.create_channel.tap { |channel| channel.prefetch(500) }.queue("", exclusive: true)
received = 0
sum = 0
done = Queue.new
queue.subscribe(manual_ack: true) do |delivery, properties, body|
  number = properties.headers["number"]
  expected = "message #{number}"
  done << "#{body.inspect} is not #{expected.inspect}" unless body == expected && properties.message_id == number.to_s
  received += 1
  sum += number
  queue.channel.ack(delivery.delivery_tag, true) if (received % 100).zero? || received == messages
  done << nil if received == messages
end

channel = connection.create_channel
exchange = channel.default_exchange
messages.times do |number|
  # No more than the consumer keeps up with: a client in one process is no load for a broker.
  sleep 0.005 while number - received > 5000
  exchange.publish("message #{number}", routing_key: queue.name, message_id: number.to_s, persistent: false,
                                        headers: { "number" => number, "nested" => { "flag" => true, "none" => nil } })
end
problem = done.pop
abort problem if problem
abort "wrong messages" unless sum == messages * (messages - 1) / 2
taken = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
puts format("%<n>d messages published and consumed in %<taken>.1f s, %<cpu>.1f us of CPU each",
            n: messages, taken: taken, cpu: cpu * 1e6 / messages)
connection.close
consumer.close
