# frozen_string_literal: true

# The least that the four measuring programs cost in Ruby: the C functions called through FFI in a loop, nothing around
# them. What a gem takes beyond this is the gem's own.
#
#   ruby bench/zmq/floor.rb local_lat|remote_lat|local_thr|remote_thr ENDPOINT SIZE_BYTES COUNT [WARMUP_COUNT] [--zero-copy]

require 'ffi'

# The functions on the path of a message; those with `wait` in their names give the interpreter's lock back.
module Z
  extend FFI::Library
  ffi_lib 'libzmq.so.5'
  attach_function :zmq_ctx_new, [], :pointer
  attach_function :zmq_ctx_term, [:pointer], :int, blocking: true
  attach_function :zmq_socket, %i[pointer int], :pointer
  attach_function :zmq_close, [:pointer], :int
  attach_function :zmq_bind, %i[pointer string], :int
  attach_function :zmq_connect, %i[pointer string], :int
  attach_function :zmq_msg_init, [:pointer], :int
  attach_function :zmq_msg_init_size, %i[pointer size_t], :int
  # Addresses as integers: they convert quicker than pointer objects.
  attach_function :zmq_msg_copy, %i[ulong ulong], :int
  attach_function :zmq_msg_data, [:ulong], :ulong
  attach_function :send, :zmq_send, %i[ulong buffer_in ulong int], :int
  attach_function :wait_send, :zmq_send, %i[ulong buffer_in ulong int], :int, blocking: true
  attach_function :msg_send, :zmq_msg_send, %i[ulong ulong int], :int
  attach_function :wait_msg_send, :zmq_msg_send, %i[ulong ulong int], :int, blocking: true
  attach_function :msg_recv, :zmq_msg_recv, %i[ulong ulong int], :int
  attach_function :wait_msg_recv, :zmq_msg_recv, %i[ulong ulong int], :int, blocking: true
end

ZERO_COPY = !ARGV.delete('--zero-copy').nil?
MEMORY = FFI::Pointer.new(1)
DONTWAIT = 1
role, endpoint, size, count, warmup = ARGV
size, count, warmup = [size, count, warmup || 0].map { |text| Integer(text) }

type, attach = { 'local_lat' => [4, :zmq_bind], 'remote_lat' => [3, :zmq_connect],
                 'local_thr' => [7, :zmq_bind], 'remote_thr' => [8, :zmq_connect] }.fetch(role)
context = Z.zmq_ctx_new
socket = Z.zmq_socket(context, type)
raise "#{attach} #{endpoint} failed" unless Z.public_send(attach, socket, endpoint).zero?

memory, source_memory = Array.new(2) { FFI::MemoryPointer.new(64).tap { |pointer| Z.zmq_msg_init(pointer) } }
Z.zmq_msg_init_size(role == 'remote_lat' ? memory : source_memory, size) if ZERO_COPY
native, message, source = [socket, memory, source_memory].map(&:address)
string = 'x' * size

# Each of these loops is one of the four programs, with messages or with strings.
loops = {
  'local_lat' => lambda do |rounds|
    if ZERO_COPY
      Z.wait_msg_recv(message, native, 0) && Z.msg_send(message, native, DONTWAIT) while (rounds -= 1) >= 0
    else
      while (rounds -= 1) >= 0
        rc = Z.wait_msg_recv(message, native, 0)
        Z.send(native, MEMORY.get_bytes(Z.zmq_msg_data(message) - 1, rc), rc, DONTWAIT)
      end
    end
  end,
  'remote_lat' => lambda do |rounds|
    if ZERO_COPY
      Z.msg_send(message, native, DONTWAIT) && Z.wait_msg_recv(message, native, 0) while (rounds -= 1) >= 0
    else
      while (rounds -= 1) >= 0
        Z.send(native, string, size, DONTWAIT)
        rc = Z.wait_msg_recv(message, native, 0)
        MEMORY.get_bytes(Z.zmq_msg_data(message) - 1, rc)
      end
    end
  end,
  'local_thr' => lambda do |rounds|
    while (rounds -= 1) >= 0
      rc = Z.msg_recv(message, native, DONTWAIT)
      rc = Z.wait_msg_recv(message, native, 0) if rc == -1
      MEMORY.get_bytes(Z.zmq_msg_data(message) - 1, rc) unless ZERO_COPY
    end
  end,
  'remote_thr' => lambda do |rounds|
    while (rounds -= 1) >= 0
      if ZERO_COPY
        Z.zmq_msg_copy(message, source)
        Z.wait_msg_send(message, native, 0) if Z.msg_send(message, native, DONTWAIT) == -1
      elsif Z.send(native, string, size, DONTWAIT) == -1
        Z.wait_send(native, string, size, 0)
      end
    end
  end
}

# In slices, because JRuby compiles what is called often, and not a loop while it runs.
run = lambda do |rounds|
  body = loops.fetch(role)
  (rounds / 100).times { body.call(100) }
  body.call(rounds % 100)
end
run.call(warmup + (role == 'local_thr' ? 1 : 0))
start_us = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond)
run.call(count - (role == 'local_thr' ? 1 : 0))
elapsed_us = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond) - start_us

puts "mean latency: #{(elapsed_us / (count * 2)).round(3)} [us]" if role == 'remote_lat'
puts "mean throughput: #{((count - 1) / elapsed_us * 1_000_000).round} [msg/s]" if role == 'local_thr'
Z.zmq_close(socket)
Z.zmq_ctx_term(context)
