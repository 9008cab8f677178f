"""Holds the vectors against pika."""

import decimal
import json
import struct
import sys
from datetime import datetime, timezone
from pathlib import Path

import pika
from pika import data, spec
from pika.compat import long

VECTORS = Path(__file__).parent.parent / "vectors"
YEAR_10000 = 253402300800
NAMES = {"global": "global_qos"}


class Inexpressible(Exception):
    """Python has no type that pika would write so."""


def flat(value):
    """All values with their tags in a table, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
        for content in value.values():
            yield from flat(content)
    elif isinstance(value, list):
        for element in value:
            yield from flat(element)


def tables_in(vector):
    return [vector.get("table"), *vector.get("fields", {}).values(), *vector.get("properties", {}).values()]


def any_value(vector, condition):
    return any(condition(tag, content) for table in tables_in(vector) for tag, content in flat(table))


def repeated_keys(vector):
    keys = [json.dumps(key) for key, _ in vector.get("table", [])]
    return len(keys) != len(set(keys))


def far_timestamp(vector):
    return any_value(vector, lambda tag, content: tag == "T" and content >= YEAR_10000)


def negative_digits(vector):
    return any_value(vector, lambda tag, content: tag == "D" and content["digits"] >= 1 << 31)


DIFFERENCES = [
    ("a float is read as the integer before it", lambda v: any_value(v, lambda tag, _: tag in "fd")),
    ("a decimal's digits are read as signed", negative_digits),
    ("a date has a year of four digits", far_timestamp),
    ("a dict holds a key once", repeated_keys),
    ("connection.update-secret is only written", lambda v: v.get("method") == "connection.update-secret"),
]


def string(value):
    """As pika reads strings: text if it is UTF-8, else bytes."""
    return value if isinstance(value, str) else bytes.fromhex(value["hex"])


def table(entries):
    return {string(key): field(value) for key, value in entries}


def field(value):
    ((tag, content),) = value.items()
    if tag == "S":
        return string(content)
    if tag == "x":
        return bytes.fromhex(content)
    if tag == "F":
        return table(content)
    if tag == "A":
        return [field(element) for element in content]
    if tag == "D":
        return decimal.Decimal(content["digits"]).scaleb(-content["scale"])
    if tag == "T":
        return datetime.fromtimestamp(content, timezone.utc) if content < YEAR_10000 else None
    if tag in "fd":
        return struct.unpack(f">{tag}", bytes.fromhex(content))[0]
    return content


def writable(value):
    """The same, as Python's types must be for pika to write the tag."""
    ((tag, content),) = value.items()
    if tag == "S" and not isinstance(content, str):
        raise Inexpressible("bytes are written as x")
    if tag == "l":
        return long(content)
    if tag == "F":
        return writable_table(content)
    if tag == "A":
        return [writable(element) for element in content]
    if tag == "D" and (content["digits"] % 10 == 0 or content["scale"] == 0):
        raise Inexpressible("decimals are written normalised")
    if tag not in "tISxTVD":
        raise Inexpressible(f"nothing is written with the tag {tag}")
    return field(value)


def writable_table(entries):
    return {string(key): writable(value) for key, value in entries}


def plain(value, read_table):
    """A field of a method or a property."""
    if isinstance(value, list):
        return read_table(value)
    return string(value) if isinstance(value, (str, dict)) else value


def attributes(values, read_table):
    return {NAMES.get(name, name.replace("-", "_")): plain(value, read_table) for name, value in values.items()}


def bytes_of(text):
    return text.encode() if isinstance(text, str) else text


def same(read, expected):
    for name, value in expected.items():
        found = getattr(read, name)
        # Long strings of methods come as bytes or text, whichever; both are the same bytes.
        if isinstance(value, (str, bytes)) and bytes_of(found) != bytes_of(value):
            return False
        if not isinstance(value, (str, bytes)) and found != value:
            return False
    return True


class Report:
    def __init__(self):
        self.read = self.written = self.inexpressible = 0
        self.differences = {reason: 0 for reason, _ in DIFFERENCES}
        self.failures = []

    def attempt(self, vector, action, work):
        try:
            fine = work()
        except Inexpressible:
            self.inexpressible += 1
            return
        except Exception as error:
            fine, action = False, f"{action}: {error!r}"
        if fine:
            self.read += action == "read"
            self.written += action == "write"
            return
        reasons = [reason for reason, applies in DIFFERENCES if applies(vector)]
        for reason in reasons:
            self.differences[reason] += 1
        if not reasons:
            self.failures.append(f"{vector['name']}: {action}")

    def finish(self):
        print(f"pika {pika.__version__}: {self.read} vectors read, {self.written} written, "
              f"{self.inexpressible} that it has no way to write")
        for reason, count in self.differences.items():
            print(f"  differs in {count}: {reason}")
            if not count:
                self.failures.append(f"no longer so: {reason}")
        for failure in self.failures:
            print(f"  FAILED {failure}")
        return 1 if self.failures else 0


def check_methods(report):
    for vector in load("methods.json"):
        raw = bytes.fromhex(vector["bytes"])
        kind = spec.methods[vector["class_id"] << 16 | vector["method_id"]]
        assert kind.NAME.lower().replace("-", "").replace(".", "") == \
            vector["method"].replace("-", "").replace(".", ""), kind.NAME
        # Not by its constructor, which wants fields that only reading provides.
        report.attempt(vector, "read",
                       lambda: same(kind.__new__(kind).decode(raw, 4), attributes(vector["fields"], table)))

        def write():
            method = kind(**attributes(vector["fields"], writable_table))
            expected = bytes.fromhex(vector.get("encodes_as", vector["bytes"]))
            return b"".join(method.encode()) == expected[4:]

        report.attempt(vector, "write", write)


def check_headers(report):
    for vector in load("headers.json"):
        raw = bytes.fromhex(vector["bytes"])
        properties = spec.BasicProperties
        report.attempt(vector, "read",
                       lambda: same(properties().decode(raw, 12), attributes(vector["properties"], table)))

        def write():
            frame = pika.frame.Header(1, vector["body_size"],
                                      properties(**attributes(vector["properties"], writable_table)))
            return frame.marshal()[7:-1] == raw

        report.attempt(vector, "write", write)


def check_tables(report):
    for vector in load("tables.json"):
        raw = bytes.fromhex(vector["bytes"])
        report.attempt(vector, "read", lambda: data.decode_table(raw, 0) == (table(vector["table"]), len(raw)))

        def write():
            pieces = []
            length = data.encode_table(pieces, writable_table(vector["table"]))
            written = b"".join(pieces)
            return written == bytes.fromhex(vector.get("encodes_as", vector["bytes"])) and length == len(written)

        report.attempt(vector, "write", write)


def load(name):
    return json.loads((VECTORS / name).read_text())["vectors"]


def main():
    sys.setrecursionlimit(10_000)
    report = Report()
    check_methods(report)
    check_headers(report)
    check_tables(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
