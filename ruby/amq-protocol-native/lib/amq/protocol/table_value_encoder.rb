# frozen_string_literal: true

require "amq/protocol/native"
require "amq/protocol/type_constants"

module AMQ
  module Protocol
    # Single values of a field table.
    class TableValueEncoder
      include TypeConstants

      # @!method self.encode(value)
      #   @return [String] The value with its type before it.
      #   @raise [ArgumentError] When it cannot be written.

      # @!method self.field_value_size(value)
      #   @return [Integer] Bytes that {encode} gives.

      # @!method self.array_size(array)
      #   @return [Integer] Bytes of the elements, without type and length of the array.

      Native.define_value_encoder(self)
    end
  end
end
