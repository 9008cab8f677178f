# frozen_string_literal: true

# Uses everything while the garbage collector runs at every chance it gets, and compacts the heap where Ruby can.
#
#   ruby -I lib test/gc_stress.rb

require 'ffi-rzmq'

def check(code)
  raise ZMQ::Util.error_string if code == -1
end

def exercise(round)
  ZMQ::Context.open do |context|
    first = context.open(:pair, bind: "inproc://stress#{round}", linger: 0)
    second = context.open(:pair, connect: "inproc://stress#{round}")
    exercise_strings(first, second)
    exercise_messages(first, second)
    exercise_batches(first, second)
    exercise_watching(first, second)
    context.socket(ZMQ::PUSH) # is left to the collector
  end
end

def exercise_strings(first, second)
  received = +''
  [1, 100, 100, 5000].each do |size|
    check(first.send_string(text = 'x' * size))
    check(second.recv_string(received))
    raise 'wrong bytes' unless received == text
  end
  check(first.send_strings(%w[a b c]))
  raise 'wrong parts' unless second.receive_message(timeout: 5) == %w[a b c]
end

def exercise_messages(first, second)
  [ZMQ::Message, ZMQ::ManagedMessage].each do |kind|
    check(first.sendmsg(sent = kind.new('text')))
    check(second.recvmsg(received = kind.new))
    raise 'wrong message' unless received.copy_out_string == 'text'

    [sent, received].each(&:close) if kind == ZMQ::Message
  end
end

def exercise_batches(first, second)
  messages = ['a', ['b', '', 'c' * 5000], '']
  2.times { first.send_messages(messages) }
  raise 'wrong batch' unless second.receive_messages(3, timeout: 5) == [['a'], messages[1], ['']]

  looped = second.each_message(timeout: 0).map { |*parts| parts }
  raise 'wrong messages' unless looped == [['a'], messages[1], ['']]
end

def exercise_watching(first, second)
  poller = ZMQ::Poller.new
  poller.register_readable(second)
  first.monitor(&:close)
  first << 'watched'
  raise 'not seen' unless poller.poll(1000) == 1 && second.receive == 'watched'
end

GC.auto_compact = true if GC.respond_to?(:auto_compact=)
GC.stress = true
20.times { |round| exercise(round) }
GC.stress = false
puts 'GC.stress: 20 rounds'
