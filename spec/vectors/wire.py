"""AMQP 0-9-1 on the wire, written from the specification for the sake of the vectors.

Shares nothing with the codecs that the vectors test: it is slow, plain, and reads the same description.
Values have the form that README.md gives them in the JSON files.
"""

import struct
import tomllib
from pathlib import Path

SPEC = tomllib.loads((Path(__file__).parent.parent / "amqp-0-9-1.toml").read_text())
DOMAINS = {domain["name"]: domain["type"] for domain in SPEC["domain"]}
NUMBERS = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q", "timestamp": ">Q"}
FIELD_NUMBERS = {
    "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "T": ">Q",
}
FRAME_END = b"\xce"


def elementary(declared):
    """The elementary type of a field's type."""
    return DOMAINS.get(declared, declared)


def bytes_of(text):
    """The bytes of a string in a vector."""
    return text.encode() if isinstance(text, str) else bytes.fromhex(text["hex"])


def text(raw):
    """A string for a vector."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def shortstr(value):
    raw = bytes_of(value)
    assert len(raw) <= 255
    return bytes([len(raw)]) + raw


def counted(raw):
    return struct.pack(">I", len(raw)) + raw


def field(value):
    """A field-table value with its tag."""
    ((tag, content),) = value.items()
    return tag.encode() + field_content(tag, content)


def field_content(tag, content):
    if tag == "t":
        return bytes([content])
    if tag in FIELD_NUMBERS:
        return struct.pack(FIELD_NUMBERS[tag], content)
    if tag in "fdx":
        raw = bytes.fromhex(content)
        return counted(raw) if tag == "x" else raw
    if tag == "D":
        return struct.pack(">BI", content["scale"], content["digits"])
    if tag == "S":
        return counted(bytes_of(content))
    if tag == "A":
        return counted(b"".join(map(field, content)))
    if tag == "F":
        return table(content)
    assert tag == "V", tag
    return b""


def table(entries):
    """A table with the length before it."""
    return counted(b"".join(shortstr(key) + field(value) for key, value in entries))


def single(kind, value):
    """A field of a method that is no bit, or a property."""
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    return {"shortstr": shortstr, "longstr": lambda v: counted(bytes_of(v)), "table": table}[kind](value)


EMPTY = {"shortstr": "", "longstr": "", "table": []}


def arguments(method, values, reserved=None):
    """The arguments of a method; `reserved` gives reserved fields values that they should not have."""
    out, bits = b"", []
    for entry in method.get("fields", []) + [None]:
        kind = entry and elementary(entry["type"])
        if bits and (kind != "bit" or len(bits) == 8):
            out += bytes([sum(bit << at for at, bit in enumerate(bits))])
            bits = []
        if entry is None:
            break
        source = (reserved or {}) if entry.get("reserved") else values
        value = source.get(entry["name"], EMPTY.get(kind, 0))
        if kind == "bit":
            bits.append(bool(value))
        else:
            out += single(kind, value)
    return out


def method_payload(class_, method, values, reserved=None):
    return struct.pack(">HH", class_["id"], method["id"]) + arguments(method, values, reserved)


def header_payload(class_, body_size, values, weight=0, more_flags=0):
    flags, out = more_flags, b""
    for entry in class_["properties"]:
        if entry["name"] in values:
            flags |= 1 << entry["flag"]
            out += single(entry["type"], values[entry["name"]])
    return struct.pack(">HHQH", class_["id"], weight, body_size, flags) + out


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END
