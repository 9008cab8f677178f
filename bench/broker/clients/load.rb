# Load by Bunny: each producer and consumer has a connection of its own, and a call for each message.
#
# Prints rates every second as RabbitMQ PerfTest does; `bench/broker/run --load bunny` measures with it.

require "bunny"
require "optparse"

options = { producers: 1, consumers: 1, size: 1024, prefetch: 0, confirm: 0, fanout: 0, queues: 1, rate: 0, seconds: 30 }
OptionParser.new do |parser|
  parser.on("--uri URI") { |uri| options[:uri] = uri }
  parser.on("--durable") { options[:durable] = true }
  options.keys.each { |name| parser.on("--#{name} N", Integer) { |number| options[name] = number } }
end.parse!
abort "--uri is missing" unless options[:uri]
Thread.report_on_exception = true
Thread.abort_on_exception = true

def connect(options)
  Bunny.new(options[:uri], recover: false, automatically_recover: false).start
end

# A producer's unconfirmed publishes, by delivery tag: `add` waits until there may be one more.
class Window
  def initialize(size)
    @size, @open, @last = size, {}, 0
    @mutex, @changed = Mutex.new, ConditionVariable.new
  end

  def add
    @mutex.synchronize do
      @changed.wait(@mutex) while @open.size >= @size
      @open[@last += 1] = true
    end
  end

  def confirmed(tag, multiple)
    @mutex.synchronize do
      if multiple
        @open.shift while @open.any? && @open.first[0] <= tag
      else
        @open.delete(tag)
      end
      @changed.signal
    end
  end
end

def publish(options, exchange, queue, count)
  channel = connect(options).create_channel
  window = Window.new(options[:confirm]) if options[:confirm].positive?
  channel.confirm_select(->(tag, multiple, _nack) { window.confirmed(tag, multiple) }) if window
  target = exchange ? channel.exchange(exchange, passive: true) : channel.default_exchange
  body = "\0".b * options[:size]
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  loop do
    window&.add
    if options[:rate].positive?
      early = start + count[0].fdiv(options[:rate]) - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sleep(early) if early.positive?
    end
    target.publish(body, routing_key: exchange ? "" : queue, persistent: options[:durable] == true)
    count[0] += 1
  end
end

def consume(options, queue, count)
  channel = connect(options).create_channel
  acknowledges = options[:prefetch].positive?
  channel.prefetch(options[:prefetch]) if acknowledges
  channel.queue(queue, passive: true).subscribe(manual_ack: acknowledges) do |delivery, _properties, _body|
    count[0] += 1
    channel.ack(delivery.delivery_tag) if acknowledges
  end
end

setup = connect(options)
channel = setup.create_channel
queues = (1..[options[:fanout], options[:queues]].max).map { |number| "bench-#{number}" }
exchange = "bench" if options[:fanout].positive?
channel.fanout(exchange, durable: options[:durable] == true) if exchange
queues.each do |name|
  queue = channel.queue(name, durable: options[:durable] == true)
  queue.bind(exchange) if exchange
end
setup.close

published = Array.new(options[:producers]) { [0] }
consumed = Array.new(options[:consumers]) { [0] }
consumed.each_with_index { |count, index| consume(options, queues[index % queues.size], count) }
published.each_with_index { |count, index| Thread.new { publish(options, exchange, queues[index % queues.size], count) } }

before, at = [0, 0], Process.clock_gettime(Process::CLOCK_MONOTONIC)
finish = at + options[:seconds]
while at < finish
  sleep 1
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  totals = [published.sum { |count| count[0] }, consumed.sum { |count| count[0] }]
  sent, received = totals.zip(before).map { |total, last| ((total - last) / (now - at)).round }
  puts "published: #{sent} msg/s, consumed: #{received} msg/s"
  $stdout.flush
  before, at = totals, now
end
exit!(0)
