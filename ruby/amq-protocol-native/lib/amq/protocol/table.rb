# frozen_string_literal: true

require "amq/protocol/native"
require "amq/protocol/type_constants"
require "amq/protocol/table_value_encoder"
require "amq/protocol/table_value_decoder"

module AMQ
  module Protocol
    # Field tables: Hashes on Ruby's side.
    #
    # Keys are Strings or Symbols (anything else by its `to_s`) of at most 255 bytes. Values:
    #
    # | Ruby | on the wire | read back as |
    # |---|---|---|
    # | String, Symbol | `S` | String |
    # | Integer | `l`, the lower 64 bits | Integer |
    # | Float, {Float32Bit} | `d`, `f` | Float |
    # | BigDecimal | `D` | BigDecimal |
    # | true, false, nil | `t`, `V` | the same |
    # | Time | `T`, whole seconds | Time |
    # | Array, Hash | `A`, `F` | Array, Hash |
    #
    # The other integers (`b` `B` `s` `u` `I` `i` `L`) and `x` are read, too. Strings that are read have the encoding of
    # what they were read from; keys are frozen. Tables and arrays nest at most 64 deep.
    class Table
      # A format for `String#unpack`. Nothing here uses it; programs may.
      PACK_UINT32_BE = "N"

      include TypeConstants

      # A value that no table can hold.
      class InvalidTableError < StandardError
        def initialize(key, value)
          super("Invalid table value on key #{key}: #{value.inspect} (#{value.class})")
        end
      end

      # @!method self.encode(table)
      #   @param table [Hash, nil]
      #   @return [String] The bytes of the table, with their length before them.
      #   @raise [ArgumentError] When a value cannot be written.
      #   @raise [RangeError] When a key is too long.

      # @!method self.decode(data)
      #   @param data [String] A table with its length. What follows it is not looked at.
      #   @return [Hash{String => Object}]
      #   @raise [ArgumentError] When a value has an unknown type.
      #   @raise [MalformedInputError] When the bytes are no table.

      # @!method self.length(data)
      #   @return [Integer] The length that the first four bytes say.

      # @!method self.hash_size(table)
      #   @return [Integer] Bytes that the entries take.

      # @!method self.decode_table_key(data, offset)
      #   @return [Array(String, Integer)] A key, and the offset of its value's type.

      Native.define_table(self)
    end
  end
end
