"""Prints the product and version that the broker at an AMQP URI announces in connection.start.

Only the standard library: it runs before anything is installed, also to see whether the broker is up.
"""

import socket
import struct
import sys
from urllib.parse import urlsplit


def announced(payload):
    """The text entries of the server properties (nested tables are skipped by their length)."""
    offset = 6  # class, method, version
    (length,) = struct.unpack_from(">I", payload, offset)
    end, offset, found = offset + 4 + length, offset + 4, {}
    while offset < end:
        key_length = payload[offset]
        key = payload[offset + 1 : offset + 1 + key_length].decode()
        tag = payload[offset + 1 + key_length : offset + 2 + key_length]
        offset += 2 + key_length
        if tag not in (b"S", b"F"):
            raise ValueError(f"server property {key} has type {tag!r}")
        (value_length,) = struct.unpack_from(">I", payload, offset)
        if tag == b"S":
            found[key] = payload[offset + 4 : offset + 4 + value_length].decode()
        offset += 4 + value_length
    return found


def main():
    uri = urlsplit(sys.argv[1])
    with socket.create_connection((uri.hostname, uri.port or 5672), timeout=5) as stream:
        stream.sendall(b"AMQP\x00\x00\x09\x01")
        reader = stream.makefile("rb")
        kind, channel, size = struct.unpack(">BHI", reader.read(7))
        if (kind, channel) != (1, 0) or size > 4096:
            raise ValueError("the first frame is no connection.start")
        properties = announced(reader.read(size))
    print(properties["product"], properties["version"])


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, struct.error) as problem:
        sys.exit(f"no AMQP 0-9-1 broker answers at {sys.argv[1]}: {problem}")
