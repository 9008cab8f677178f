# frozen_string_literal: true

# Sends and receives many messages in every way there is and watches the memory of the process: it must not grow.
#
#   ruby -I lib test/leak.rb [MESSAGES]
#
# MESSAGES is 10,000,000 unless given. Ends with status 1 when the memory grew by more than GROWTH_MAX_KB after the
# first tenth, during which caches and the garbage collector settle. Give a JVM a small heap (`-Xmx200m`): it takes what
# it may before it looks for garbage, and FFI's memory waits for that.

require 'ffi-rzmq'

GROWTH_MAX_KB = RUBY_ENGINE == 'jruby' ? 131_072 : 8_192
SIZE_BYTES = 500
LARGE = ('x' * 100_000).freeze

# One way to bring a message from one socket to the other.
class Way
  attr_reader :name

  def initialize(name, &round)
    @name = name
    @round = round
  end

  def run(count)
    count.times(&@round)
  end
end

def resident_kb
  GC.start
  File.read('/proc/self/status')[/VmRSS:\s+(\d+)/, 1].to_i
end

def check(code)
  raise ZMQ::Util.error_string if code == -1
end

context = ZMQ::Context.new
first, second = Array.new(2) { context.socket(ZMQ::PAIR) }
check(first.bind('inproc://leak'))
check(second.connect('inproc://leak'))

string = 'x' * SIZE_BYTES
received = +''
reused = ZMQ::Message.new
poller = ZMQ::Poller.new
poller.register_readable(second)

WAYS = [
  Way.new('string to string') { check(first.send_string(string)) || check(second.recv_string(received)) },
  Way.new('string to new string') { check(first.send_string(string)) || check(second.recv_string(+'')) },
  Way.new('parts') { check(first.send_strings([string, string])) || check(second.recv_strings([])) },
  Way.new('message reused') do
    check(reused.copy_in_string(string)) || check(first.sendmsg(reused)) || check(second.recvmsg(reused))
  end,
  Way.new('message closed') do
    message = ZMQ::Message.new
    check(first.send_and_close(ZMQ::Message.new(string))) || check(second.recvmsg(message)) || check(message.close)
  end,
  Way.new('managed message') do
    check(first.sendmsg(ZMQ::ManagedMessage.new(string))) || check(second.recvmsg(ZMQ::ManagedMessage.new))
  end,
  Way.new('exceptions and timeouts') { (first << string) && second.receive(timeout: 1) },
  Way.new('batches') { first.send_messages([string, [string, string]]) && second.receive_messages(timeout: 1) },
  Way.new('loop') do
    first.send_messages([string, [string, string]]) && second.each_message(timeout: 0) { |*parts| parts }
  end,
  Way.new('large') { first.send_messages([LARGE]) && second.receive_messages(timeout: 1) },
  Way.new('poll') { (first << string) && check(poller.poll(1000)) || check(second.recv_string(received)) },
  Way.new('refused') { second.recv_string(received, ZMQ::DONTWAIT) }
].freeze

total = Integer(ARGV.fetch(0, 10_000_000))
per_step = [total / 10 / WAYS.size, 1].max
sizes = Array.new(10) do |step|
  WAYS.each { |way| way.run(per_step) }
  resident_kb.tap { |kilobytes| puts "#{per_step * WAYS.size * (step + 1)} messages: #{kilobytes} KB" }
end

grown = sizes.last - sizes.first
puts "grown by #{grown} KB after the first tenth"
[first, second].each(&:close)
context.terminate
exit(grown <= GROWTH_MAX_KB)
