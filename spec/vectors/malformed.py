"""Bytes that are no value, and what is wrong with them."""

import struct

from cases import MAX_NESTING, fill, nested, typical
from wire import FRAME_END, SPEC, counted, frame, header_payload, method_payload, table

TAGS = {tag for kind in SPEC["field-type"] for tag in (kind["tag"], kind.get("also-read")) if tag}


def case(name, what, raw, error, offset, **more):
    return {"name": name, "what": what, "bytes": raw.hex(), "error": error, "offset": offset, **more}


def class_and_method(name):
    class_name, method_name = name.split(".")
    class_ = next(entry for entry in SPEC["class"] if entry["name"] == class_name)
    return class_, next(entry for entry in class_["method"] if entry["name"] == method_name)


def truncations(name, what, raw, starts):
    """Every proper prefix; the error is at the last of `starts` (offsets of elementary values) that the prefix reaches."""
    return [case(f"{name}, cut after {end} of {len(raw)} bytes", what, raw[:end], "truncated",
                 max(start for start in starts if start <= end)) for end in range(len(raw))]


def frames():
    cases = [case(f"frame type {kind}", "frame", struct.pack(">BHI", kind, 1, 0) + FRAME_END, "unknown-type", 0)
             for kind in (0, 4, 5, 6, 7, 9, 65, 255)]
    for end in (0x00, 0xCD, 0xCF, 0xFF):
        raw = frame(1, 1, b"abcd")[:-1] + bytes([end])
        cases.append(case(f"end marker {end:#04x}", "frame", raw, "bad-end", len(raw) - 1))
    large = struct.pack(">BHI", 3, 1, 4096 - 7)
    cases.append(case("a frame one octet over the limit", "frame", large, "too-large", 0, frame_max=4096))
    cases.append(case("a frame of 4 GiB", "frame", struct.pack(">BHI", 3, 1, 0xFFFFFFFF), "too-large", 0, frame_max=131072))
    return cases


def methods():
    cases = [
        case("no class", "method", b"", "truncated", 0),
        case("half a class", "method", b"\0", "truncated", 0),
        case("class without a method", "method", b"\0\x3c\0", "truncated", 2),
    ]
    known = {entry["id"]: {method["id"] for method in entry["method"]} for entry in SPEC["class"]}
    for class_id in (0, 1, 30, 61, 0xFFFF):
        cases.append(case(f"class {class_id}", "method", struct.pack(">HH", class_id, 10), "unknown-class", 0))
    for class_id, ids in known.items():
        for method_id in sorted({0, 1, 12, max(ids) + 1, 0xFFFF} - ids):
            raw = struct.pack(">HH", class_id, method_id)
            cases.append(case(f"method {method_id} of class {class_id}", "method", raw, "unknown-method", 2))
    for class_ in SPEC["class"]:
        for method in class_["method"]:
            raw = method_payload(class_, method, fill(method, typical))
            name = f"{class_['name']}.{method['name']} and a byte more"
            cases.append(case(name, "method", raw + b"\0", "trailing-bytes", len(raw)))
    publish = method_payload(*class_and_method("basic.publish"), {"exchange": "ex", "routing-key": "key"})
    cases += truncations("basic.publish", "method", publish, [0, 2, 4, 6, 9, 13])
    declare = method_payload(*class_and_method("queue.declare"), {"queue": "q", "arguments": [["k", {"I": 1}]]})
    cases += truncations("queue.declare", "method", declare, [0, 2, 4, 6, 8, 9])
    over = struct.pack(">HHH", 60, 40, 0) + b"\xff" + b"a" * 254
    cases.append(case("short string longer than the payload", "method", over, "truncated", 6))
    over = struct.pack(">HH", 10, 20) + struct.pack(">I", 0xFFFFFFFF) + b"abc"
    cases.append(case("long string of 4 GiB", "method", over, "truncated", 4))
    over = struct.pack(">HHH", 50, 10, 0) + b"\0\0" + struct.pack(">I", 0x80000000)
    cases.append(case("table of 2 GiB", "method", over, "truncated", 8))
    return cases


def headers():
    class_, _ = class_and_method("basic.publish")
    typical_header = header_payload(class_, 9, {"content-type": "a/b", "headers": [["k", {"S": "v"}]], "delivery-mode": 2,
                                                "timestamp": 1})
    cases = truncations("header", "header", typical_header, [0, 2, 4, 12, 14, 18, 30, 31])
    cases.append(case("header and a byte more", "header", typical_header + b"\0", "trailing-bytes", len(typical_header)))
    for weight in (1, 0x0100, 0xFFFF):
        cases.append(case(f"weight {weight}", "header", header_payload(class_, 0, {}, weight=weight), "non-zero-weight", 2))
    for flags in (1, 2, 3):
        raw = header_payload(class_, 0, {}, more_flags=flags)
        cases.append(case(f"flags {flags:#06x}", "header", raw, "unknown-property-flags", 12))
    raw = header_payload(class_, 0, {})[:-2] + b"\x20\0" + counted(b"\x01kI\0\0\0")
    cases.append(case("headers with half an integer", "header", raw, "truncated", 21))
    return cases


def tables():
    cases = []
    for tag in sorted(set(range(256)) - {ord(tag) for tag in TAGS}):
        raw = counted(b"\x01k" + bytes([tag]) + b"\0" * 8)
        cases.append(case(f"tag {tag:#04x}", "table", raw, "unknown-field-type", 6))
    raw = counted(b"\x01k" + b"A" + counted(b"I\0\0\0\x07?"))
    cases.append(case("unknown tag in an array", "table", raw, "unknown-field-type", 16))
    for kind in ("tables", "arrays", "both"):
        raw = table(nested(MAX_NESTING + 1, kind))
        cases.append(case(f"{MAX_NESTING + 1} levels of {kind}", "table", raw, "too-deep", deepest(raw)))
        raw = deeply_nested(1000, kind)
        cases.append(case(f"1000 levels of {kind}", "table", raw, "too-deep", deepest(raw)))
    for tag, length in [("t", 1), ("b", 1), ("B", 1), ("s", 2), ("u", 2), ("I", 4), ("i", 4), ("l", 8), ("L", 8), ("f", 4),
                        ("d", 8), ("T", 8), ("S", 4), ("x", 4), ("A", 4), ("F", 4)]:
        for present in range(length):
            raw = counted(b"\x01k" + tag.encode() + b"\0" * present)
            cases.append(case(f"{present} of {length} bytes of {tag}", "table", raw, "truncated", 7))
    for present in range(5):
        raw = counted(b"\x01kD" + b"\0" * present)
        cases.append(case(f"{present} of 5 bytes of D", "table", raw, "truncated", 7 if present == 0 else 8))
    for tag in "SxAF":
        for length in (1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
            raw = counted(b"\x01k" + tag.encode() + struct.pack(">I", length))
            cases.append(case(f"{tag} of {length} bytes that are not there", "table", raw, "truncated", 7))
    cases.append(case("key longer than the table", "table", counted(b"\x05k"), "truncated", 4))
    cases.append(case("key without a value", "table", counted(b"\x01k"), "truncated", 6))
    raw = counted(b"\x01kF" + struct.pack(">I", 20) + b"\x01aI\0\0\0\x01") + b"\0" * 20
    cases.append(case("inner table that reaches beyond the outer one", "table", raw, "truncated", 7))
    cases.append(case("table longer than the input", "table", struct.pack(">I", 1), "truncated", 0))
    raw = table([["a", {"S": "b"}], ["c", {"A": [{"l": 1}]}]])
    cases += truncations("table", "table", raw, [0])
    return cases


def deeply_nested(levels, kind):
    """As `cases.nested`, in bytes, and without a recursion."""
    value = b"I\0\0\0\x07"
    for level in range(levels - 1):
        as_array = kind == "arrays" or kind == "both" and level % 2 == 0
        value = b"A" + counted(value) if as_array else b"F" + counted(b"\x01k" + value)
    return counted(b"\x01k" + value)


def deepest(raw):
    """Offset of the first octet in the innermost table or array that is allowed no more."""
    at = 4
    for _ in range(MAX_NESTING):
        if raw[at:at + 1] == b"\x01":
            at += 2
        at += 5
    return at


def all_cases():
    return frames() + methods() + headers() + tables()
