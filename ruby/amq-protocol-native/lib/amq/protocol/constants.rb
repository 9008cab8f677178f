# frozen_string_literal: true

module AMQ
  # AMQP 0-9-1: frames, methods, properties and field tables.
  module Protocol
    # Version of the protocol.
    PROTOCOL_VERSION = "0.9.1".b.freeze
    # What a client sends first.
    PREAMBLE = "AMQP\x00\x00\x09\x01".b.freeze
    # TCP port of a server.
    DEFAULT_PORT = 5672
    # TCP port of a server that speaks TLS.
    TLS_PORT = 5671
    # Another name of {TLS_PORT}.
    SSL_PORT = TLS_PORT

    EMPTY_STRING = ""

    # Formats for `Array#pack` and `String#unpack`. Nothing here uses them; programs may.
    PACK_INT8 = "c"
    PACK_CHAR = "C"
    PACK_UINT16 = "n"
    PACK_UINT16_X2 = "n2"
    PACK_UINT32 = "N"
    PACK_UINT32_X2 = "N2"
    PACK_UINT64_BE = "Q>"
    PACK_INT64 = "q"
    PACK_INT64_BE = "q>"
    PACK_UCHAR_UINT32 = "CN"
    PACK_CHAR_UINT16_UINT32 = "cnN"
    PACK_32BIT_FLOAT = "f"
    PACK_64BIT_FLOAT = "G"
  end
end
