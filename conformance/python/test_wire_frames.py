"""Frames that no client sends: what is answered, and that no other client notices."""

import struct

import pytest

from support.broker import fresh, skip_where_reference_differs
from support.wire import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    METHODS,
    body_frame,
    declare_arguments,
    frame,
    header_frame,
    longlong,
    method_frame,
    octet,
    opened,
    publish,
    publish_method,
    short,
    shortstr,
    table,
)


@pytest.fixture(autouse=True)
def bystander():
    """Another connection, which every mistake has to leave alone."""
    with opened() as wire:
        yield wire
        assert wire.declare(1, fresh(), bits=4)[1] == 0


def refusal_of(data, **handshake):
    """Sends these bytes on a connection with channel 1 open; gives the connection.close that comes."""
    with opened(**handshake) as wire:
        wire.send(data)
        return wire.expect_connection_close()


# -- broken frames: 501 FRAME_ERROR


@pytest.mark.parametrize("kind", [0, 4, 7, 9, 255])
def test_an_unknown_frame_type_is_a_frame_error(kind):
    code, text, _ = refusal_of(frame(kind, 1, b"payload"))
    assert (code, text) == (501, f'FRAME_ERROR - type {kind}, all octets = <<"payload">>: unknown_frame')


def test_of_a_long_frame_of_an_unknown_type_the_beginning_is_shown():
    code, text, _ = refusal_of(frame(9, 1, b"0123456789abcdef and more"))
    assert (code, text) == (501, 'FRAME_ERROR - type 9, first 16 octets = <<"0123456789abcdef">>: unknown_frame')


@pytest.mark.parametrize(
    "good",
    [
        method_frame(1, "queue.declare", declare_arguments("q")),
        publish_method(1, "", "q") + header_frame(1, 0),
        publish_method(1, "", "q") + header_frame(1, 2) + body_frame(1, b"ab"),
    ],
    ids=["method", "header", "body"],
)
def test_a_bad_end_marker_is_a_frame_error(good):
    code, text, _ = refusal_of(good[:-1] + b"\xcd")
    assert (code, text[:14]) == (501, "FRAME_ERROR - ")


@pytest.mark.parametrize("frame_max", [4096, 131072])
def test_a_frame_above_frame_max_is_a_frame_error(frame_max):
    """By 9 bytes at least: RabbitMQ allows for clients that forget to count the frame's own 8."""
    too_large = publish_method(1, "", "q") + header_frame(1, 10**6) + body_frame(1, bytes(frame_max + 1))
    code, text, _ = refusal_of(too_large, frame_max=frame_max)
    assert (code, text[:14]) == (501, "FRAME_ERROR - ")


def test_a_frame_that_only_announces_a_huge_size_is_refused_at_once():
    code, _, _ = refusal_of(struct.pack(">BHI", METHOD, 1, 0xFFFFFFFF))
    assert code == 501


def test_a_frame_of_exactly_frame_max_is_good():
    body = bytes(4096 - 8)
    with opened(frame_max=4096) as wire:
        queue = wire.declare(1, "", bits=4)[0]
        wire.send(publish(1, "", queue, body))
        assert wire.get(1, queue) == (b"\x00\x00", body, [4096])


@pytest.mark.parametrize("size", [1, 4087, 4088, 4089, 8176, 8177, 20000])
def test_no_delivered_frame_exceeds_the_negotiated_frame_max(size):
    """A message published in large frames and read by a connection with small ones."""
    with opened() as producer, opened(frame_max=4096) as consumer:
        queue = producer.declare(1, fresh(), bits=8)[0]
        producer.select_confirms().publish_confirmed(1, queue, bytes(size))
        _, body, frame_sizes = consumer.get(1, queue)
        assert len(body) == size
        assert max(frame_sizes) <= 4096
        assert len(frame_sizes) == -(-size // 4088), "no more frames than needed"
        consumer.send_method(1, "queue.delete", short(0) + shortstr(queue) + octet(0))


def test_a_body_in_many_small_frames_and_an_empty_one():
    with opened() as wire:
        queue = wire.declare(1, "", bits=4)[0]
        wire.send(publish_method(1, "", queue) + header_frame(1, 6) + body_frame(1, b"ab"))
        wire.send(body_frame(1, b"") + body_frame(1, b"cde") + body_frame(1, b"f"))
        assert wire.get(1, queue)[1] == b"abcdef"


def test_every_octet_may_come_alone():
    with opened() as wire:
        queue = wire.declare(1, "", bits=4)[0]
        request = method_frame(1, "basic.get", short(0) + shortstr(queue) + octet(1))
        for value in publish(1, "", queue, b"split") + request:
            wire.send(bytes([value]))
        wire.expect("basic.get-ok", 1)
        assert wire.expect_content(1)[1] == b"split"


@skip_where_reference_differs("3.10 waits for more")
def test_a_body_longer_than_announced_is_a_frame_error():
    code, text, _ = refusal_of(publish_method(1, "", "q") + header_frame(1, 3) + body_frame(1, b"four"))
    assert (code, text[:14]) == (501, "FRAME_ERROR - ")


def test_contents_of_two_channels_may_be_interleaved():
    with opened() as wire:
        queue = wire.select_confirms(1).open_channel(2).select_confirms(2).declare(1, "", bits=4)[0]
        wire.send(publish_method(1, "", queue) + publish_method(2, "", queue))
        wire.send(header_frame(2, 4) + header_frame(1, 4) + body_frame(1, b"on") + body_frame(2, b"on"))
        wire.send(body_frame(2, b" 2") + frame(HEARTBEAT, 0, b"") + body_frame(1, b" 1"))
        for _ in range(2):
            wire.expect("basic.ack")
        assert sorted(wire.get(1, queue)[1] for _ in range(2)) == [b"on 1", b"on 2"]


# -- good frames in a wrong order: 505 UNEXPECTED_FRAME

NO_HEADER = "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"
NO_BODY = "UNEXPECTED_FRAME - expected content body, got non content body frame instead"
DECLARE = method_frame(1, "queue.declare", declare_arguments("q"))


@pytest.mark.parametrize(
    "data, expected",
    [
        (publish_method(1, "", "q") + DECLARE, NO_HEADER),
        (publish_method(1, "", "q") + publish_method(1, "", "q"), NO_HEADER),
        (publish_method(1, "", "q") + body_frame(1, b"x"), NO_HEADER),
        (publish_method(1, "", "q") + header_frame(1, 5) + DECLARE, NO_BODY),
        (publish_method(1, "", "q") + header_frame(1, 5) + header_frame(1, 5), NO_BODY),
        (publish_method(1, "", "q") + header_frame(1, 5) + body_frame(1, b"abc") + DECLARE, NO_BODY),
        (
            publish_method(1, "", "q") + header_frame(1, 0, class_id=50),
            "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead",
        ),
        (header_frame(1, 0), "UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
        (body_frame(1, b"x"), "UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
    ],
    ids=[
        "method for header", "publish for header", "body for header", "method for body", "header for body",
        "method in the middle of the body", "header of another class", "header for method", "body for method",
    ],
)  # fmt: skip
def test_frames_out_of_order(data, expected):
    code, text, _ = refusal_of(data)
    assert (code, text) == (505, expected)


@pytest.mark.parametrize("channel", [1, 7])
def test_a_heartbeat_on_a_channel_is_an_unexpected_frame(channel):
    code, text, _ = refusal_of(frame(HEARTBEAT, channel, b""))
    assert (code, text[:19]) == (505, "UNEXPECTED_FRAME - ")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_content_on_channel_0_is_an_unexpected_frame(kind):
    code, text, _ = refusal_of(frame(kind, 0, bytes(14)))
    assert (code, text[:19]) == (505, "UNEXPECTED_FRAME - ")


# -- methods where they do not belong: 504 CHANNEL_ERROR


@pytest.mark.parametrize(
    "method, arguments",
    [
        ("basic.publish", short(0) + shortstr("") + shortstr("q") + octet(0)),
        ("queue.declare", declare_arguments("q")),
        ("channel.open", shortstr("")),
        ("connection.start-ok", table() + shortstr("PLAIN") + table() + shortstr("en_US")),
        ("connection.tune-ok", bytes(8)),
        ("connection.open", shortstr("/") + shortstr("") + octet(0)),
    ],
)
def test_a_method_that_does_not_belong_on_channel_0(method, arguments):
    code, text, ids = refusal_of(method_frame(0, method, arguments))
    assert (code, text) == (504, "CHANNEL_ERROR - unexpected method in connection state running")
    assert ids == METHODS[method]


def test_a_method_on_a_channel_that_was_never_opened():
    code, text, ids = refusal_of(method_frame(9, "queue.declare", declare_arguments("q")))
    assert (code, text, ids) == (504, "CHANNEL_ERROR - expected 'channel.open'", METHODS["queue.declare"])


def test_a_method_on_a_channel_that_is_closed_again():
    with opened() as wire:
        wire.send_method(1, "channel.close", short(200) + shortstr("") + short(0) + short(0))
        wire.expect("channel.close-ok", 1)
        wire.send_method(1, "queue.declare", declare_arguments("q"))
        code, text, _ = wire.expect_connection_close()
    assert (code, text) == (504, "CHANNEL_ERROR - expected 'channel.open'")


def test_a_channel_cannot_be_opened_twice():
    code, text, ids = refusal_of(method_frame(1, "channel.open", shortstr("")))
    assert (code, text, ids) == (504, "CHANNEL_ERROR - second 'channel.open' seen", METHODS["channel.open"])


@pytest.mark.parametrize(
    "method, arguments",
    [
        ("connection.tune-ok", bytes(8)),
        ("connection.close", short(200) + shortstr("bye") + short(0) + short(0)),
        ("queue.declare-ok", shortstr("q") + bytes(8)),
    ],
)
def test_a_method_that_does_not_belong_on_a_channel(method, arguments):
    code, text, ids = refusal_of(method_frame(1, method, arguments))
    assert (code, text, ids) == (503, "COMMAND_INVALID - unimplemented method", METHODS[method])


def test_one_channel_more_than_channel_max():
    """Some clients open all that they may: the limit itself has to work."""
    with opened(channel_max=3) as wire:
        wire.open_channel(2).open_channel(3)
        wire.send_method(4, "channel.open", shortstr(""))
        code, text, _ = wire.expect_connection_close()
    assert code == 530
    assert text == "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)"


# -- what is no method at all


@skip_where_reference_differs("3.10 ends the socket without a word")
@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("ids", [(99, 10), (60, 999), (0, 0), (20, 99)])
def test_an_unknown_method_is_named_unimplemented(ids, channel):
    code, text, _ = refusal_of(method_frame(channel, ids))
    assert code in (503, 540)
    assert text.endswith(" - unimplemented method")


@pytest.mark.parametrize("cut", [1, 3, 5, 8])
def test_a_method_cut_short_is_a_frame_error(cut):
    whole = struct.pack(">HH", *METHODS["queue.declare"]) + declare_arguments("q")
    code, text, ids = refusal_of(frame(METHOD, 1, whole[:-cut]))
    assert (code, text[:14], ids) == (501, "FRAME_ERROR - ", METHODS["queue.declare"])


def test_a_table_longer_than_its_frame_is_a_frame_error():
    arguments = short(0) + shortstr("q") + octet(0) + b"\xff\xff\xff\xff"
    code, text, ids = refusal_of(method_frame(1, "queue.declare", arguments))
    assert (code, text[:14], ids) == (501, "FRAME_ERROR - ", METHODS["queue.declare"])


def test_properties_cut_short_end_only_their_connection():
    """Flags say content-type, and nothing follows."""
    with opened() as wire:
        wire.send(publish_method(1, "", "q") + frame(HEADER, 1, short(60) + short(0) + longlong(0) + b"\x80\x00"))
        wire.expect_end()


def test_noise_after_the_handshake_ends_only_its_connection():
    with opened() as wire:
        wire.send(bytes(range(256)) * 64)
        wire.expect_end()


def test_a_socket_dropped_in_the_middle_of_a_message_loses_only_that_message():
    with opened() as other:
        queue = other.declare(1, fresh(), bits=8)[0]
        with opened() as wire:
            wire.select_confirms().publish_confirmed(1, queue, b"whole")
            wire.send(publish_method(1, "", queue) + header_frame(1, 100) + body_frame(1, b"half"))
        assert other.declare(1, queue, bits=8 | 1)[1] == 1
        other.send_method(1, "queue.delete", short(0) + shortstr(queue) + octet(0))


def test_the_reply_text_is_cut_to_what_a_short_string_holds():
    long_name = "n" * 250
    with opened() as wire:
        wire.send_method(1, "queue.declare", declare_arguments(long_name, bits=1))
        code, text, _ = wire.expect_channel_close()
    whole = f"NOT_FOUND - no queue '{long_name}' in vhost '/'"
    assert (code, text) == (404, whole[:252] + "...")
