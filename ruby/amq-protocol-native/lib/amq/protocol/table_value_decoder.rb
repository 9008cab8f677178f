# frozen_string_literal: true

require "amq/protocol/native"
require "amq/protocol/type_constants"

module AMQ
  module Protocol
    # Single values of a field table, read from within a String. Every method takes the String and the offset in bytes
    # at which the value begins (behind its type), and returns the value and the offset behind it.
    #
    # `decode_byte` gives a byte as it is, 0 to 255. In a table the type `b` is a signed number.
    class TableValueDecoder
      include TypeConstants

      # Formats for `String#unpack`. Nothing here uses them; programs may.
      PACK_INT16_BE = "s>"
      PACK_INT64_BE = "q>"
      PACK_UINT32_BE = "N"
      PACK_UINT64_BE = "Q>"
      PACK_UCHAR_UINT32 = "CN"
      PACK_FLOAT32 = "f"
      PACK_FLOAT64 = "G"

      # @!method self.decode_value_type(data, offset)
      #   @return [Array(String, Integer)] The letter of a type, and the offset of the value.

      # @!method self.decode_string(data, offset)
      #   @return [Array(String, Integer)]
      # @!method self.decode_integer(data, offset)
      #   @return [Array(Integer, Integer)] A signed integer of 32 bits.
      # @!method self.decode_long(data, offset)
      #   @return [Array(Integer, Integer)] A signed integer of 64 bits.
      # @!method self.decode_short(data, offset)
      #   @return [Array(Integer, Integer)] A signed integer of 16 bits.
      # @!method self.decode_byte(data, offset)
      #   @return [Array(Integer, Integer)] A byte.
      # @!method self.decode_boolean(data, offset)
      #   @return [Array(Boolean, Integer)]
      # @!method self.decode_time(data, offset)
      #   @return [Array(Time, Integer)]
      # @!method self.decode_32bit_float(data, offset)
      #   @return [Array(Float, Integer)]
      # @!method self.decode_64bit_float(data, offset)
      #   @return [Array(Float, Integer)]
      # @!method self.decode_big_decimal(data, offset)
      #   @return [Array(BigDecimal, Integer)]
      # @!method self.decode_hash(data, offset)
      #   @return [Array(Hash, Integer)]
      # @!method self.decode_array(data, offset)
      #   @return [Array(Array, Integer)]

      Native.define_value_decoder(self)
    end
  end
end
