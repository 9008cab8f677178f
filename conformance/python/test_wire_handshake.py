"""From the first byte to open-ok, right and wrong, spoken by hand."""

import struct
import time

import pytest

from support.broker import ON_REFERENCE, USER, fresh
from support.wire import (
    CLIENT_CAPABILITIES,
    PROTOCOL_HEADER,
    Wire,
    long,
    longstr,
    octet,
    opened,
    short,
    shortstr,
    start_ok,
    table,
)

CAPABILITIES = {
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
    "consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
}  # fmt: skip


@pytest.mark.parametrize(
    "header",
    [b"AMQP\x00\x00\x09\x02", b"AMQP\x00\x00\x08\x00", b"AMQP\x07\x07\x07\x07", b"HTTP/1.1", b"\x00" * 8],
    ids=["0-9-2", "0-8", "nonsense version", "another protocol", "zeros"],
)
def test_a_bad_protocol_header_is_answered_with_the_good_one(header):
    with Wire() as wire:
        wire.send(header)
        assert wire.reader.read(8) == PROTOCOL_HEADER
        wire.expect_end()


def test_start_announces_the_protocol_and_what_the_broker_is():
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        start = wire.expect("connection.start", 0).arguments
    assert start[:2] == b"\x00\x09"
    for name in ("product", "version", "platform", "copyright", "information", "cluster_name", "capabilities"):
        assert shortstr(name) in start
    for name in CAPABILITIES:
        assert shortstr(name) + b"t\x01" in start, f"{name} is announced as true"
    (size,) = struct.unpack_from(">I", start, 2)
    mechanisms_size = struct.unpack_from(">I", start, 6 + size)[0]
    mechanisms = start[10 + size : 10 + size + mechanisms_size].split()
    assert {b"PLAIN", b"AMQPLAIN"} <= set(mechanisms)
    assert b"ANONYMOUS" not in mechanisms
    assert start[10 + size + mechanisms_size :] == longstr("en_US")


def test_tune_offers_the_default_limits():
    with Wire() as wire:
        assert wire.login() == (2047, 131072, 60)


def test_the_header_may_come_octet_by_octet():
    with Wire() as wire:
        for position in range(8):
            wire.send(PROTOCOL_HEADER[position : position + 1])
            time.sleep(0.01)
        wire.expect("connection.start", 0)


def test_login_by_amqplain():
    response = table([("LOGIN", b"S", longstr(USER)), ("PASSWORD", b"S", longstr("guest"))])[4:]
    with Wire() as wire:
        wire.handshake(mechanism="AMQPLAIN", response=response).open_channel()


REFUSED = "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."


@pytest.mark.parametrize("user, password", [(USER, "wrong"), ("stranger", "guest"), ("", ""), (USER, "")])
def test_a_refused_login_says_so(user, password):
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(0, "connection.start-ok", start_ok(user, password))
        code, text, _ = wire.expect_connection_close()
    assert (code, text) == (403, REFUSED.format("PLAIN"))


def test_a_refused_login_by_amqplain_names_the_mechanism():
    response = table([("LOGIN", b"S", longstr(USER)), ("PASSWORD", b"S", longstr("wrong"))])[4:]
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(0, "connection.start-ok", start_ok(mechanism="AMQPLAIN", response=response))
        code, text, _ = wire.expect_connection_close()
    assert (code, text) == (403, REFUSED.format("AMQPLAIN"))


def test_a_client_that_cannot_read_a_refusal_just_sees_the_end():
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        without = [name for name in CLIENT_CAPABILITIES if name != "authentication_failure_close"]
        wire.send_method(0, "connection.start-ok", start_ok(USER, "wrong", capabilities=without))
        assert wire.read_frame() is None


@pytest.mark.parametrize("response", ["", "guest", "\0guest", "guest\0guest", "\0guest\0guest\0more"])
def test_a_malformed_plain_response_is_no_login(response):
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(0, "connection.start-ok", start_ok(response=response))
        wire.expect_end()


def test_an_unknown_mechanism_ends_the_connection():
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(0, "connection.start-ok", start_ok(mechanism="CARRIER-PIGEON"))
        assert wire.read_frame() is None, "no frame at all"


def test_an_unknown_vhost_is_named():
    with Wire() as wire:
        wire.login()
        wire.send_method(0, "connection.tune-ok", short(0xFF) + long(131072) + short(0))
        wire.send_method(0, "connection.open", shortstr("nowhere") + shortstr("") + octet(0))
        code, text, ids = wire.expect_connection_close()
    assert (code, text, ids) == (530, "NOT_ALLOWED - vhost nowhere not found", (10, 40))


@pytest.mark.parametrize(
    "channel_max, frame_max, explanation",
    [
        (5000, 131072, "negotiated channel_max = 5000 is higher than the maximum allowed value (2047)"),
        (2047, 200000, "negotiated frame_max = 200000 is higher than the maximum allowed value (131072)"),
    ],
)
def test_a_tune_ok_above_the_limits_is_refused(channel_max, frame_max, explanation):
    with Wire() as wire:
        wire.login()
        wire.send_method(0, "connection.tune-ok", short(channel_max) + long(frame_max) + short(0))
        if ON_REFERENCE:  # it just ends the socket; a clear reason is better
            return wire.expect_end()
        code, text, _ = wire.expect_connection_close()
    assert (code, text) == (530, f"NOT_ALLOWED - {explanation}")


@pytest.mark.parametrize("frame_max", [100, 4095])
def test_a_tune_ok_below_the_least_frame_size_ends_the_connection(frame_max):
    with Wire() as wire:
        wire.login()
        wire.send_method(0, "connection.tune-ok", short(2047) + long(frame_max) + short(0))
        wire.expect_end()


def test_a_start_ok_above_4096_bytes_ends_the_connection():
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(0, "connection.start-ok", start_ok(password="x" * 5000))
        wire.expect_end()


@pytest.mark.parametrize("early", ["connection.open", "connection.tune-ok", "connection.close-ok", "channel.open"])
def test_a_method_before_its_time_ends_the_connection(early):
    with Wire() as wire:
        wire.send(PROTOCOL_HEADER)
        wire.expect("connection.start", 0)
        wire.send_method(1 if early == "channel.open" else 0, early, bytes(8))
        wire.expect_end()


def test_no_handshake_within_ten_seconds_closes_at_any_stage():
    """One test for three stages, so that the wait is paid once. An open connection outlives the limit."""
    started = time.monotonic()
    with Wire(timeout_s=25) as silent, Wire(timeout_s=25) as greeted, Wire(timeout_s=25) as half, opened() as idle:
        half.send(PROTOCOL_HEADER[:4])
        greeted.send(PROTOCOL_HEADER)
        greeted.expect("connection.start", 0)
        for wire in (silent, greeted, half):
            wire.expect_end()
        assert 8 < time.monotonic() - started
        idle.declare(1, fresh(), bits=4)


def test_close_is_answered_even_with_channels_open():
    with opened() as wire:
        wire.send_method(0, "connection.close", short(200) + shortstr("bye") + short(0) + short(0))
        wire.expect("connection.close-ok", 0)
