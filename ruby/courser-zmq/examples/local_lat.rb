# frozen_string_literal: true

# The answering end of the latency test: binds a REP socket and sends every message back.
#
#   ruby -I lib examples/local_lat.rb tcp://127.0.0.1:5555 1024 100000 [WARMUP_COUNT] [--zero-copy]

require_relative 'perf'

def echo_messages(perf, socket, message, rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.recvmsg(message) == -1
    perf.stop if socket.sendmsg(message) == -1
  end
end

def echo_strings(perf, socket, string, rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.recv_string(string) == -1
    perf.stop if socket.send_string(string) == -1
  end
end

Perf.run(ZMQ::REP, :bind) do |perf, socket|
  echo = perf.zero_copy? ? :echo_messages : :echo_strings
  content = perf.zero_copy? ? ZMQ::Message.new : +''
  perf.in_slices(perf.warmup + perf.count) { |rounds| send(echo, perf, socket, content, rounds) }
end
