# frozen_string_literal: true

require 'ffi-rzmq'

# What the four measuring programs share. Without `--batch` they use nothing but the interface of ffi-rzmq, so that they
# run with either gem: `ruby -I lib examples/local_lat.rb ...` with this one.
class Perf
  USAGE = "usage: #{$PROGRAM_NAME} ENDPOINT SIZE_BYTES COUNT [WARMUP_COUNT] [--zero-copy | --batch]".freeze
  MODES = %w[--zero-copy --batch].freeze
  SLICE = 100

  attr_reader :size_bytes, :count, :warmup

  # Parses the arguments, opens the socket and yields it with them; closes everything afterwards.
  def self.run(type, attach)
    arguments = ARGV - MODES
    abort USAGE unless arguments.size.between?(3, 4)

    perf = new(*arguments.drop(1).map { |text| Integer(text) }, modes: ARGV & MODES)
    perf.with_socket(type, attach, arguments.first) { |socket| yield perf, socket }
  end

  def initialize(size_bytes, count, warmup = 0, modes: [])
    @size_bytes = size_bytes
    @count = count
    @warmup = warmup
    @modes = modes
  end

  def zero_copy?
    @modes.include?('--zero-copy')
  end

  def batch?
    @modes.include?('--batch')
  end

  def with_socket(type, attach, endpoint)
    context = ZMQ::Context.new
    socket = context.socket(type)
    stop if socket.public_send(attach, endpoint) == -1
    yield socket
    socket.close
    context.terminate
  end

  def payload
    'x' * size_bytes
  end

  # Yields how many rounds to do next, until `rounds` are done. JRuby compiles what is called often, and not a loop
  # while it runs.
  def in_slices(rounds)
    while rounds.positive?
      slice = [rounds, SLICE].min
      yield slice
      rounds -= slice
    end
  end

  # Ends the program after a call that failed.
  def stop
    raise "#{ZMQ::Util.error_string} (#{ZMQ::Util.errno})"
  end

  # Runs the block and returns how many microseconds and how many new objects it took.
  def measure
    objects = allocated
    start_us = now_us
    yield
    [now_us - start_us, allocated - objects]
  end

  private

  def now_us
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond)
  end

  # JRuby does not count objects.
  def allocated
    RUBY_ENGINE == 'ruby' ? GC.stat(:total_allocated_objects) : 0
  end
end
