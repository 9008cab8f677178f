# frozen_string_literal: true

module AMQ
  module Protocol
    # A number that is to be written with 32 bits: Ruby's own floats are written with 64.
    class Float32Bit
      # @return [Float]
      attr_reader :value

      # @param value [Numeric]
      def initialize(value)
        @value = value
      end
    end
  end
end
