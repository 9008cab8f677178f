#!/usr/bin/env python3
"""Writes the vectors beside this file, or says which are out of date (--check). Needs Python 3.11, nothing else."""

import json
import sys
from pathlib import Path

import cases
import malformed
import wire

FORMAT = 1


def methods():
    for class_ in wire.SPEC["class"]:
        for method in class_["method"]:
            name = f"{class_['name']}.{method['name']}"
            for what, values in cases.method_values(method):
                payload = wire.method_payload(class_, method, values)
                yield {"name": f"{name}: {what}", "method": name, "class_id": class_["id"], "method_id": method["id"],
                       "fields": values, "bytes": payload.hex()}
            yield from tolerated_method(class_, method, name)


def tolerated_method(class_, method, name):
    """What is read although no program should write it: reserved fields with a value, bits without a meaning."""
    reserved = {entry["name"]: cases.largest(entry, wire.elementary(entry["type"]))
                for entry in method.get("fields", []) if entry.get("reserved")}
    values = cases.fill(method, cases.smallest)
    canonical = wire.method_payload(class_, method, values)
    vector = {"method": name, "class_id": class_["id"], "method_id": method["id"], "fields": values,
              "encodes_as": canonical.hex()}
    if reserved:
        payload = wire.method_payload(class_, method, values, reserved)
        yield {"name": f"{name}: reserved fields with values", **vector, "bytes": payload.hex()}
    kinds = [wire.elementary(entry["type"]) for entry in method.get("fields", [])]
    if kinds and kinds[-1] == "bit":
        payload = canonical[:-1] + bytes([0xFF & -(1 << kinds.count("bit"))])
        yield {"name": f"{name}: bits without a meaning", **vector, "bytes": payload.hex()}


def headers():
    class_ = next(entry for entry in wire.SPEC["class"] if "properties" in entry)
    for what, values in cases.property_values(class_["properties"]):
        yield header(class_, what, 0 if not values else 1024, values)
    for size in (1, 255, 65536, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        yield header(class_, f"body of {size} bytes", size, {})


def header(class_, what, body_size, values):
    payload = wire.header_payload(class_, body_size, values)
    return {"name": what, "class_id": class_["id"], "body_size": body_size, "properties": values, "bytes": payload.hex()}


def tables():
    for what, value in cases.scalar_values():
        yield {"name": what, "table": [["k", value]], "bytes": wire.table([["k", value]]).hex()}
        if len(wire.field(value)) < 1000:
            entries = [["k", {"A": [value, value]}]]
            yield {"name": f"{what}, in an array", "table": entries, "bytes": wire.table(entries).hex()}
    for what, entries in cases.table_values():
        yield {"name": what, "table": entries, "bytes": wire.table(entries).hex()}
    for octet in (2, 128, 255):
        canonical = wire.table([["k", {"t": True}]])
        yield {"name": f"true as {octet}", "table": [["k", {"t": True}]],
               "bytes": (canonical[:-1] + bytes([octet])).hex(), "encodes_as": canonical.hex()}
    for number in (-1, 0, 1 << 62):
        canonical = wire.table([["k", {"l": number}]])
        yield {"name": f"L {number}", "table": [["k", {"l": number}]],
               "bytes": canonical.replace(b"l", b"L", 1).hex(), "encodes_as": canonical.hex()}


def frames():
    kinds = {entry["name"]: entry["id"] for entry in wire.SPEC["frame"]}
    for name, kind in kinds.items():
        for channel in (0, 1, 255, 256, 65535):
            payload = b"" if name == "heartbeat" else b"\x00\xce\x01abc\xce"
            yield {"name": f"{name} on channel {channel}", "kind": name, "channel": channel, "payload": payload.hex(),
                   "bytes": wire.frame(kind, channel, payload).hex()}
    for length in (0, 1, 255, 256, 4088):
        payload = b"\xce" * length
        yield {"name": f"body of {length} bytes", "kind": "body", "channel": 1, "payload": payload.hex(),
               "bytes": wire.frame(kinds["body"], 1, payload).hex()}


FILES = {"methods.json": methods, "headers.json": headers, "tables.json": tables, "frames.json": frames,
         "malformed.json": malformed.all_cases}


def render(vectors):
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors)
    return f'{{"format": {FORMAT}, "vectors": [\n{lines}\n]}}\n'


def main():
    stale = []
    for name, vectors in FILES.items():
        path, content = Path(__file__).parent / name, render(list(vectors()))
        if not path.exists() or path.read_text() != content:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(content)
    if stale:
        print(("out of date: " if "--check" in sys.argv else "wrote ") + ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
