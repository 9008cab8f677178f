# frozen_string_literal: true

# The answering end of the latency test: binds a REP socket and sends every message back.
#
#   ruby -I lib examples/local_lat.rb tcp://127.0.0.1:5555 1024 100000 [WARMUP_COUNT] [--zero-copy]

require_relative 'perf'

Perf.run(ZMQ::REP, :bind) do |perf, socket|
  rounds = perf.warmup + perf.count
  if perf.zero_copy?
    message = ZMQ::Message.new
    rounds.times do
      perf.check(socket.recvmsg(message))
      perf.check(socket.sendmsg(message))
    end
    message.close
  else
    string = +''
    rounds.times do
      perf.check(socket.recv_string(string))
      perf.check(socket.send_string(string))
    end
  end
end
