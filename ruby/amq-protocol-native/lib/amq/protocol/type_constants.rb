# encoding: binary
# frozen_string_literal: true

module AMQ
  module Protocol
    # The letters before values in a field table.
    module TypeConstants
      TYPE_STRING = "S"
      TYPE_INTEGER = "I"
      TYPE_UNSIGNED_32BIT = "i"
      TYPE_TIME = "T"
      TYPE_DECIMAL = "D"
      TYPE_HASH = "F"
      TYPE_ARRAY = "A"
      TYPE_BYTE = "b"
      TYPE_UNSIGNED_8BIT = "B"
      TYPE_64BIT_FLOAT = "d"
      TYPE_32BIT_FLOAT = "f"
      TYPE_SIGNED_64BIT = "l"
      TYPE_SIGNED_16BIT = "s"
      TYPE_UNSIGNED_16BIT = "u"
      TYPE_BOOLEAN = "t"
      TYPE_BYTE_ARRAY = "x"
      TYPE_VOID = "V"
      TEN = "10"

      BOOLEAN_TRUE = "\x01"
      BOOLEAN_FALSE = "\x00"
    end
  end
end
