# frozen_string_literal: true

# The sending end of the throughput test: connects a PUSH socket and sends as fast as it is let.
#
#   ruby -I lib examples/remote_thr.rb tcp://127.0.0.1:5555 100 1000000 [WARMUP_COUNT] [--zero-copy]
#
# Zero-copy stands here for messages that are written where libzmq keeps them: with strings, each send copies.

require_relative 'perf'

Perf.run(ZMQ::PUSH, :connect) do |perf, socket|
  rounds = perf.warmup + perf.count
  if perf.zero_copy?
    source = ZMQ::Message.new(perf.payload)
    message = ZMQ::Message.new
    while (rounds -= 1) >= 0
      message.copy(source.pointer)
      perf.stop if socket.sendmsg(message) == -1
    end
    [source, message].each(&:close)
  else
    string = perf.payload
    while (rounds -= 1) >= 0
      perf.stop if socket.send_string(string) == -1
    end
  end
end
