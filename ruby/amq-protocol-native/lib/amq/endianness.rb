# frozen_string_literal: true

module AMQ
  # The order in which this machine keeps the bytes of a number.
  module Endianness
    BIG_ENDIAN = [1].pack("s") == [1].pack("n")

    def big_endian?
      BIG_ENDIAN
    end

    def little_endian?
      !BIG_ENDIAN
    end

    extend self
  end
end
