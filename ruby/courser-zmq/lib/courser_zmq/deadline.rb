# frozen_string_literal: true

module ZMQ
  # A point in time on the monotonic clock, or never.
  #
  # @api private
  class Deadline
    # What C functions take at most.
    INT_MAX = (1 << 31) - 1
    private_constant :INT_MAX

    # @param milliseconds [Numeric, nil] from now; nil, negative or infinite is never
    def self.after_ms(milliseconds)
      never = milliseconds.nil? || milliseconds.negative? || milliseconds.infinite?
      new(never ? nil : now_ms + milliseconds)
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

    # @return [Integer] whole milliseconds until then, rounded up, but no more than a C int can tell; 0 when it has
    #   passed, -1 when it never comes
    def remaining_ms
      return -1 unless @at_ms

      (@at_ms - Deadline.now_ms).ceil.clamp(0, INT_MAX)
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
