# frozen_string_literal: true

# The sending end of the throughput test: connects a PUSH socket and sends as fast as it is let.
#
#   ruby -I lib examples/remote_thr.rb tcp://127.0.0.1:5555 100 1000000 [WARMUP_COUNT] [--zero-copy | --batch]
#
# Zero-copy stands here for messages that are written where libzmq keeps them: with strings, each send copies.

require_relative 'perf'

def send_messages(perf, socket, (source, message), rounds)
  while (rounds -= 1) >= 0
    message.copy(source.pointer)
    perf.stop if socket.sendmsg(message) == -1
  end
end

def send_strings(perf, socket, string, rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.send_string(string) == -1
  end
end

def send_batch(_perf, socket, batch, rounds)
  socket.send_messages(rounds == batch.size ? batch : batch.first(rounds))
end

Perf.run(ZMQ::PUSH, :connect) do |perf, socket|
  post, content = if perf.batch?
                    [:send_batch, [perf.payload] * Perf::SLICE]
                  elsif perf.zero_copy?
                    [:send_messages, [ZMQ::Message.new(perf.payload), ZMQ::Message.new]]
                  else
                    [:send_strings, perf.payload]
                  end
  perf.in_slices(perf.warmup + perf.count) { |rounds| send(post, perf, socket, content, rounds) }
end
