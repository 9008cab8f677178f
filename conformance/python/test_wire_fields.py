"""Field values come back as they went, type and bytes: all widths and signs, which no client can send."""

import struct

import pytest

from support.broker import fresh, skip_where_reference_differs
from support.wire import body_frame, header_frame, long, longlong, longstr, opened, publish_method, short, table

FIELDS = [
    ("false", b"t", b"\x00"), ("true", b"t", b"\x01"),
    ("byte least", b"b", b"\x80"), ("byte most", b"b", b"\x7f"), ("unsigned byte", b"B", b"\xff"),
    ("short least", b"s", b"\x80\x00"), ("short most", b"s", b"\x7f\xff"), ("unsigned short", b"u", b"\xff\xff"),
    ("int least", b"I", b"\x80\x00\x00\x00"), ("int minus one", b"I", b"\xff" * 4), ("unsigned int", b"i", b"\xff" * 4),
    ("long least", b"l", b"\x80" + bytes(7)), ("long most", b"l", b"\x7f" + b"\xff" * 7),
    ("float", b"f", struct.pack(">f", 1.5)), ("double", b"d", struct.pack(">d", -0.0)),
    ("decimal", b"D", b"\x02" + long(31415)),
    ("text", b"S", longstr("grüße")), ("empty text", b"S", longstr("")), ("not utf-8", b"S", longstr(b"\xff\xfe\x00")),
    ("bytes", b"x", longstr(bytes(range(256)))), ("timestamp", b"T", longlong(1609459200)),
    ("epoch", b"T", longlong(0)), ("void", b"V", b""),
    ("empty table", b"F", table()), ("empty array", b"A", long(0)),
    ("table", b"F", table([("inner", b"F", table([("deep", b"I", long(1)), ("", b"V", b"")]))])),
    ("array", b"A", longstr(b"I" + long(7) + b"S" + longstr("x") + b"A" + longstr(b"t\x01") + b"F" + table())),
]  # fmt: skip


NO_FIGURES = [("infinity", b"f", b"\x7f\x80\x00\x00"), ("nan", b"d", b"\x7f\xf8" + bytes(6))]


def properties_with_headers(entries):
    return short(1 << 13) + table(entries)


def assert_come_back(properties, body=b""):
    with opened() as wire:
        queue = wire.declare(1, "", bits=4)[0]
        content = header_frame(1, len(body), properties) + (body_frame(1, body) if body else b"")
        wire.send(publish_method(1, "", queue) + content)
        assert wire.get(1, queue)[:2] == (properties, body)


@pytest.mark.parametrize("field", FIELDS, ids=[name for name, *_ in FIELDS])
def test_a_header_of_every_type_comes_back_unchanged(field):
    assert_come_back(properties_with_headers([field]), b"x")


@skip_where_reference_differs("Erlang has no such numbers")
@pytest.mark.parametrize("field", NO_FIGURES, ids=[name for name, *_ in NO_FIGURES])
def test_what_is_not_a_number_comes_back_unchanged(field):
    assert_come_back(properties_with_headers([field]))


def test_all_types_in_one_message_and_duplicate_keys():
    assert_come_back(properties_with_headers([*FIELDS, FIELDS[0]]))


def test_tables_nested_ten_deep():
    value = table([("leaf", b"t", b"\x01")])
    for _ in range(9):
        value = table([("nested", b"F", value)])
    assert_come_back(properties_with_headers([("nested", b"F", value)]))


@pytest.mark.parametrize("tag, value", [(tag, value) for _, tag, value in FIELDS[2:13]])
def test_an_integer_of_any_width_is_good_as_an_argument(tag, value):
    """Arguments that the broker does not know are taken whatever their type."""
    with opened() as wire:
        wire.declare(1, fresh(), bits=4, arguments=[("x-conformance", tag, value)])
