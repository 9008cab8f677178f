# frozen_string_literal: true

module ZMQ
  # A point in time on the monotonic clock, or never.
  #
  # @api private
  class Deadline
    # @param milliseconds [Integer, nil] from now; nil or negative is never
    def self.after_ms(milliseconds)
      new(milliseconds.nil? || milliseconds.negative? ? nil : now_ms + milliseconds)
    end

    # @param seconds [Numeric, nil] from now; nil is never
    def self.after(seconds)
      after_ms(seconds && (seconds * 1000))
    end

    def self.now_ms
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
    end

    def initialize(at_ms)
      @at_ms = at_ms
    end

    # @return [Integer] whole milliseconds until then, rounded up; 0 when it has passed, -1 when it never comes
    def remaining_ms
      return -1 unless @at_ms

      [(@at_ms - Deadline.now_ms).ceil, 0].max
    end

    # @return [Float, nil] seconds until then, at most `most`; nil when it never comes and there is no such limit
    def remaining(most = nil)
      left = @at_ms && [(@at_ms - Deadline.now_ms) / 1000.0, 0.0].max
      [left, most].compact.min
    end

    # @return [Boolean]
    def never?
      @at_ms.nil?
    end

    # @return [Boolean]
    def passed?
      !never? && Deadline.now_ms >= @at_ms
    end
  end
end
