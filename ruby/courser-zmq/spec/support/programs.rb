# frozen_string_literal: true

require 'open3'
require 'rbconfig'

# Programs run in a process of their own.
module Programs
  LIB = File.expand_path('../../lib', __dir__)
  # The command that starts the Ruby under test.
  RUBY = ENV.fetch('COURSER_TEST_RUBY', RbConfig.ruby).split.freeze

  # Seconds that a program may take. A JVM alone may need many to start on a busy machine.
  LIMIT = RUBY_ENGINE == 'jruby' ? 100 : 60

  Result = Struct.new(:output, :errors, :status, :seconds)

  # Runs a Ruby program with this gem and waits for its end, which has to come within `limit` seconds.
  def run_ruby(code, limit: LIMIT, lib: LIB)
    load_path = lib ? ['-I', lib] : []
    run(*RUBY, *load_path, '-e', "$stdout.sync = true\n#{code}", limit: limit)
  end

  def run(*command, limit: LIMIT)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    output, errors, status = capture(command, limit)
    Result.new(output, errors, status, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
  end

  def capture(command, limit)
    Open3.popen3(*command) do |input, output, errors, waiter|
      input.close
      reading = [output, errors].map { |io| Thread.new { io.read } }
      ended = waiter.join(limit)
      Process.kill(:KILL, waiter.pid) unless ended
      texts = reading.map(&:value)
      raise "still running after #{limit} s: #{texts.join}" unless ended

      [*texts, waiter.value]
    end
  end

  # By how many kilobytes the process's memory grows while the block runs.
  def resident_growth_kb
    before = resident_kb
    yield
    GC.start
    resident_kb - before
  end

  def resident_kb
    File.read('/proc/self/status')[/VmRSS:\s+(\d+)/, 1].to_i
  end

  # How many objects a run of the block makes, in the mean.
  def objects_per_round(rounds = 1000, &round)
    10.times(&round)
    before = GC.stat(:total_allocated_objects)
    rounds.times(&round)
    (GC.stat(:total_allocated_objects) - before) / rounds.to_f
  end
end
