"""Bodies that say which message they are and whether they are whole."""

import random
import struct
import zlib

from support import wire

HEAD = struct.Struct(">4sQII")
MAGIC = b"MSG1"
NOISE = random.Random(0).randbytes(1 << 20)
FRAME_BODY_BYTES = 131072 - 8
PERSISTENT = b"\x10\x00\x02"
TRANSIENT = b"\x10\x00\x01"


def payload(message, size):
    start = message * 7919 % (len(NOISE) - size)
    return NOISE[start : start + size]


def body(message, size):
    """The body of a message: which one it is, a checksum, and `size` bytes that follow from it."""
    rest = payload(message, size)
    return HEAD.pack(MAGIC, message, size, zlib.crc32(rest, message & 0xFFFFFFFF)) + rest


def read_body(data):
    """Which message this is; raises ValueError if it is not whole."""
    if len(data) < HEAD.size:
        raise ValueError(f"a body of {len(data)} bytes")
    magic, message, size, check = HEAD.unpack_from(data)
    rest = data[HEAD.size :]
    if magic != MAGIC or len(rest) != size or zlib.crc32(rest, message & 0xFFFFFFFF) != check:
        raise ValueError(f"a body of {len(data)} bytes that says it is message {message} with {size} bytes")
    if rest != payload(message, size):
        raise ValueError(f"a body that is not the one of message {message}")
    return message


def size_of(rng):
    """Mostly small, some over several frames and a good part of a segment."""
    kind = rng.random()
    if kind < 0.6:
        return rng.randrange(200)
    if kind < 0.9:
        return rng.randrange(4096)
    if kind < 0.99:
        return rng.randrange(40_000)
    return rng.randrange(300_000)


def delayed_by(delay_ms):
    """The properties of a persistent message with the header x-delay."""
    return b"\x30\x00" + wire.table([("x-delay", b"I", wire.long(delay_ms))]) + b"\x02"


def publish_frames(channel, exchange, key, data, persistent=True, properties=None):
    """All frames of a message."""
    properties = properties or (PERSISTENT if persistent else TRANSIENT)
    frames = [
        wire.publish_method(channel, exchange, key),
        wire.header_frame(channel, len(data), properties),
    ]
    for start in range(0, len(data), FRAME_BODY_BYTES):
        frames.append(wire.body_frame(channel, data[start : start + FRAME_BODY_BYTES]))
    return b"".join(frames)
