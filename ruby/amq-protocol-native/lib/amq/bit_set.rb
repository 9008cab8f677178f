# frozen_string_literal: true

module AMQ
  # A set of bits of fixed size.
  class BitSet
    ADDRESS_BITS_PER_WORD = 6
    BITS_PER_WORD = 1 << ADDRESS_BITS_PER_WORD
    WORD_MASK = (1 << BITS_PER_WORD) - 1

    # Number of set bits below the lowest clear one.
    #
    # @private
    def self.number_of_trailing_ones(word)
      clear = ~word & WORD_MASK
      clear.zero? ? BITS_PER_WORD : (clear & -clear).bit_length - 1
    end

    # @return [Integer] Words that hold the bits.
    attr_reader :words_in_use

    # @param nbits [Integer] Number of bits, all clear.
    def initialize(nbits)
      @nbits = nbits
      @words_in_use = word_index(nbits - 1) + 1
      clear
    end

    # Sets a bit, which may be set already.
    #
    # @raise [IndexError]
    def set(index)
      check_range(index)
      @words[word_index(index)] |= bit(index)
    end

    # @return [Boolean] Whether a bit is set.
    # @raise [IndexError]
    def get(index)
      check_range(index)
      @words[word_index(index)].anybits?(bit(index))
    end
    alias [] get

    # Clears a bit, which may be clear already.
    #
    # @raise [IndexError]
    def unset(index)
      check_range(index)
      @words[word_index(index)] &= ~bit(index)
    end

    # Clears all bits.
    def clear
      @words = Array.new(@words_in_use, 0)
    end

    # @return [Integer] The lowest clear bit, -1 when no word has one. It can lie behind the last bit: the last word has
    #   room for more.
    def next_clear_bit
      word = @words.index { |bits| bits != WORD_MASK }
      word ? word * BITS_PER_WORD + BitSet.number_of_trailing_ones(@words[word]) : -1
    end

    # @return [String] The words in binary, a colon behind each.
    def to_s
      @words.map { |word| "#{word.to_s(2).rjust(BITS_PER_WORD, '0')}:" }.join
    end

    # @private
    def word_index(index)
      index >> ADDRESS_BITS_PER_WORD
    end

    protected

    def check_range(index)
      return if index >= 0 && index < @nbits

      raise IndexError, "Cannot access bit #{index} from a BitSet with #{@nbits} bits"
    end

    private

    def bit(index)
      1 << index % BITS_PER_WORD
    end
  end
end
