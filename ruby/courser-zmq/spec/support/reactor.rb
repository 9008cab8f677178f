# frozen_string_literal: true

# A small fiber scheduler: as much of one as it takes to see that a wait does not stall the other fibers.
class Reactor
  # Runs the block, and the fibers that it schedules, to their end in a thread of their own.
  def self.run(&block)
    Thread.new do
      Fiber.set_scheduler(new)
      Fiber.schedule(&block)
    end.join
  end

  def initialize
    @readable = {}
    @writable = {}
    @waiting = {}
    @ready = Queue.new
    @blocked = 0
    @wake_reader, @wake_writer = IO.pipe
  end

  def run
    while busy?
      readable, writable, = IO.select([*@readable.keys, @wake_reader], @writable.keys, [], next_timeout)
      @wake_reader.read_nonblock(1000, exception: false) if readable&.delete(@wake_reader)
      resume(readable, @readable)
      resume(writable, @writable)
      resume_late
      @ready.pop.resume until @ready.empty?
    end
  end
  alias close run

  def io_wait(io, events, timeout)
    fiber = Fiber.current
    @readable[io] = fiber if events.anybits?(IO::READABLE)
    @writable[io] = fiber if events.anybits?(IO::WRITABLE)
    @waiting[fiber] = now + timeout if timeout
    Fiber.yield ? events : 0
  ensure
    @readable.delete(io) if @readable[io] == fiber
    @writable.delete(io) if @writable[io] == fiber
    @waiting.delete(fiber)
  end

  def kernel_sleep(duration = nil)
    block(:sleep, duration)
  end

  def block(_blocker, timeout = nil)
    fiber = Fiber.current
    @waiting[fiber] = now + timeout if timeout
    @blocked += 1
    Fiber.yield
  ensure
    @blocked -= 1
    @waiting.delete(fiber)
  end

  def unblock(_blocker, fiber)
    @ready << fiber
    @wake_writer.write('.')
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  private

  def busy?
    @blocked.positive? || !@ready.empty? || ![@readable, @writable, @waiting].all?(&:empty?)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def next_timeout
    return 0 unless @ready.empty?

    earliest = @waiting.values.min
    earliest && [earliest - now, 0].max
  end

  def resume(ios, table)
    (ios || []).each { |io| table.delete(io)&.resume(true) }
  end

  def resume_late
    @waiting.select { |_, time| time <= now }.each_key { |fiber| @waiting.delete(fiber) && fiber.resume }
  end
end
