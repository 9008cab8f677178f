# frozen_string_literal: true

# The receiving end of the throughput test: binds a PULL socket, counts messages and prints their rate.
#
#   ruby -I lib examples/local_thr.rb tcp://127.0.0.1:5555 100 1000000 [WARMUP_COUNT] [--zero-copy | --batch]

require_relative 'perf'

def drain_into_message(perf, socket, message, rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.recvmsg(message) == -1
  end
end

def drain_into_string(perf, socket, string, rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.recv_string(string) == -1
  end
end

def drain_in_batches(socket, rounds)
  socket.each_message { break if (rounds -= 1).zero? } if rounds.positive?
end

Perf.run(ZMQ::PULL, :bind) do |perf, socket|
  into = perf.zero_copy? ? :drain_into_message : :drain_into_string
  content = perf.zero_copy? ? ZMQ::Message.new : +''
  drain = lambda do |rounds|
    next drain_in_batches(socket, rounds) if perf.batch?

    perf.in_slices(rounds) { |slice| send(into, perf, socket, content, slice) }
  end
  drain.call(perf.warmup + 1)
  elapsed_us, objects = perf.measure { drain.call(perf.count - 1) }

  rate = (perf.count - 1) / elapsed_us * 1_000_000
  puts "message size: #{perf.size_bytes} [B]"
  puts "message count: #{perf.count}"
  puts "mean throughput: #{rate.round} [msg/s]"
  puts "mean throughput: #{(rate * perf.size_bytes * 8 / 1_000_000).round(3)} [Mb/s]"
  puts "objects: #{(objects.to_f / perf.count).round(2)} [per receive]"
end
