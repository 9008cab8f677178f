# frozen_string_literal: true

require "amq/endianness"

module AMQ
  # Integers in the order of the wire, the highest byte first.
  module Pack
    UINT64_BE = "Q>"
    INT64_BE = "q>"
    INT16_BE = "s>"
    UINT16_BE = "n"

    # @return [String] Eight bytes.
    def self.pack_uint64_big_endian(integer)
      [integer].pack(UINT64_BE)
    end

    # @return [Array<Integer>] As many as there are in the String.
    def self.unpack_uint64_big_endian(data)
      data.unpack(UINT64_BE)
    end

    # @return [String] Two bytes.
    def self.pack_int16_big_endian(integer)
      [integer].pack(INT16_BE)
    end

    # @return [Array<Integer>]
    def self.unpack_int16_big_endian(data)
      data.unpack(INT16_BE)
    end
  end

  # The name that {Pack} used to have.
  Hacks = Pack
end
