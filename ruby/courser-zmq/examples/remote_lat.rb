# frozen_string_literal: true

# The asking end of the latency test: connects a REQ socket, plays ping-pong and prints the mean one-way time.
#
#   ruby -I lib examples/remote_lat.rb tcp://127.0.0.1:5555 1024 100000 [WARMUP_COUNT] [--zero-copy]

require_relative 'perf'

def play_with_messages(perf, socket, (message), rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.sendmsg(message) == -1
    perf.stop if socket.recvmsg(message) == -1
  end
end

def play_with_strings(perf, socket, (string, reply), rounds)
  while (rounds -= 1) >= 0
    perf.stop if socket.send_string(string) == -1
    perf.stop if socket.recv_string(reply) == -1
    raise "message of #{reply.bytesize} bytes" unless reply.bytesize == perf.size_bytes
  end
end

Perf.run(ZMQ::REQ, :connect) do |perf, socket|
  play = perf.zero_copy? ? :play_with_messages : :play_with_strings
  content = perf.zero_copy? ? [ZMQ::Message.new(perf.payload)] : [perf.payload, +'']
  ping_pong = ->(rounds) { perf.in_slices(rounds) { |slice| send(play, perf, socket, content, slice) } }
  ping_pong.call(perf.warmup)
  elapsed_us, objects = perf.measure { ping_pong.call(perf.count) }

  puts "message size: #{perf.size_bytes} [B]"
  puts "roundtrip count: #{perf.count}"
  puts "mean latency: #{(elapsed_us / (perf.count * 2)).round(3)} [us]"
  puts "objects: #{(objects.to_f / perf.count).round(2)} [per send and receive]"
end
