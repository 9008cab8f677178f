# frozen_string_literal: true

require "amq/bit_set"

module AMQ
  # Gives out integers of a range, the lowest free one first, and takes them back: channel numbers, for instance.
  class IntAllocator
    # @return [Integer] How many integers there are.
    attr_reader :number_of_bits
    # @return [Integer] The first integer behind the range.
    attr_reader :hi
    # @return [Integer] The first integer of the range.
    attr_reader :lo

    # @param lo [Integer] The first integer.
    # @param hi [Integer] The first one that does not belong to the range any more.
    # @raise [ArgumentError] When there are none in between.
    def initialize(lo, hi)
      unless hi > lo
        raise ArgumentError, "upper boundary must be greater than the lower one (given: hi = #{hi}, lo = #{lo})"
      end

      @lo = lo
      @hi = hi
      @number_of_bits = hi - lo
      @taken = BitSet.new(@number_of_bits)
    end

    # @return [Integer] An integer that is free, -1 when all are taken.
    def allocate
      index = @taken.next_clear_bit
      return -1 if index.negative? || index >= @number_of_bits

      @taken.set(index)
      @lo + index
    end

    # Takes an integer back, whether it was given out or not.
    #
    # @raise [IndexError] When it is not of the range.
    def free(integer)
      @taken.unset(integer - @lo)
      nil
    end
    alias release free

    # @return [Boolean] Whether the integer is taken.
    # @raise [IndexError] When it is not of the range.
    def allocated?(integer)
      @taken.get(integer - @lo)
    end

    # Takes everything back.
    def reset
      @taken.clear
    end
  end
end
