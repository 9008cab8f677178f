"""What a start does with a data folder that is in use, damaged, or cut off by a crash."""

import re
import struct

from broker import Broker, BrokerError, free_port
from messages import body, publish_frames, read_body
from model import Model
from support.wire import octet, opened, short, shortstr, table
from workers import DURABLE

MESSAGES = 200
SEGMENT_HEADER_BYTES = 4096
FRAME_HEADER_BYTES = 32


def expect(condition, text):
    if not condition:
        raise BrokerError(text)


def fill(wire, model, count=MESSAGES):
    """Publishes messages with a confirm each, so that each is a write of its own."""
    wire.declare(1, "q", DURABLE)
    wire.select_confirms()
    for _ in range(count):
        message = model.next_id(1)
        model.published(["q"], message)
        wire.send(publish_frames(1, "", "q", body(message, 500)))
        wire.expect("basic.ack", 1)
        model.confirmed(["q"], message)


def read_all():
    """All messages of the queue, in order."""
    with opened() as wire:
        _, count, _ = wire.declare(1, "q", DURABLE)
        return [read_body(wire.get(1, "q")[1]) for _ in range(count)]


def filled(broker):
    """A broker that was killed after it had confirmed messages; gives the model of them."""
    model = Model()
    model.add_queue("q")
    broker.start()
    with opened() as wire:
        fill(wire, model)
    broker.kill()
    model.stopped(clean=False)
    return model


def only_segment(broker):
    (segment,) = broker.journal.glob("*.log")
    return segment


def log_frames(segment):
    """The offsets of the log's frames in the file, and the end of the last."""
    data = segment.read_bytes()
    start, at, offsets = int(segment.stem, 16), SEGMENT_HEADER_BYTES, []
    while at + FRAME_HEADER_BYTES <= len(data):
        position, _, payload_bytes = struct.unpack_from("<QQI", data, at)
        if position != start + at:
            break
        offsets.append(at)
        at += (FRAME_HEADER_BYTES + payload_bytes + 7) // 8 * 8
    expect(len(offsets) >= MESSAGES, f"{segment} has {len(offsets)} frames only")
    return offsets, at


def a_second_broker_on_the_same_folder_is_refused(broker):
    broker.start()
    # On a port of its own: one that is taken is found first.
    second = Broker(broker.binary, broker.folder, free_port())
    line = second.refused_start()
    expect("in use" in line and "data" in line, f"the refusal does not say why: {line}")
    with opened() as wire:
        wire.declare(1, "still-served", DURABLE)


def a_flipped_octet_stops_the_start_and_is_named(broker):
    model = filled(broker)
    segment = only_segment(broker)
    offsets, _ = log_frames(segment)
    frame = offsets[len(offsets) // 2]
    for place in (frame + 8, frame + 20, frame + FRAME_HEADER_BYTES + 2, frame + 300):
        flip(segment, place)
        line = broker.refused_start()
        named = re.search(r"offset (\d+)", line)
        expect(str(segment) in line and named, f"the file and the offset are not named: {line}")
        expect(int(named[1]) == frame, f"damage in the frame at {frame} is reported at {named[1]}")
        expect("journal repair" in line, f"what would help is not named: {line}")
        flip(segment, place)
    broker.start()
    model.check_drained({"q": read_all()})
    expect(not model.problems, f"after the octet was put right: {model.problems}")


def flip(path, place):
    with path.open("r+b") as file:
        file.seek(place)
        value = file.read(1)[0]
        file.seek(place)
        file.write(bytes([value ^ 0x10]))


def clear(path, place):
    """Zeros from here on, as in a segment that is written ahead and was not reached yet."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes(size - place))


def a_cut_off_tail_is_no_obstacle(broker):
    """The last write did not get to the disk as a whole: at most what was in it is missing."""
    model = filled(broker)
    segment = only_segment(broker)
    offsets, end = log_frames(segment)
    clear(segment, (offsets[-1] + end) // 2)
    broker.start()
    expect("cut off" in broker.log_path.read_text(), "that something was cut off is not in the log")
    there = read_all()
    expect(len(there) >= MESSAGES - 1, f"{len(there)} of {MESSAGES} messages are left")
    with opened() as wire:
        fill(wire, model, 10)
    broker.kill()
    broker.start()
    expect(len(read_all()) >= 10, "what was confirmed after the repair is lost")


def a_lost_write_is_noticed_by_these_tests(broker):
    """The test of the test: without the last confirmed writes, the model has to complain."""
    model = filled(broker)
    segment = only_segment(broker)
    offsets, _ = log_frames(segment)
    clear(segment, offsets[-MESSAGES // 2])
    broker.start()
    model.check_drained({"q": read_all()})
    expect(any("are lost" in problem for problem in model.problems), "half of the log is gone, and nothing is lost")


def what_was_declared_before_a_confirm_is_there(broker):
    for number in range(5):
        exchange, queue = f"x{number}", f"q{number}"
        broker.start()
        with opened() as wire:
            arguments = short(0) + shortstr(exchange) + shortstr("topic") + octet(DURABLE) + table()
            wire.send_method(1, "exchange.declare", arguments)
            wire.expect("exchange.declare-ok", 1)
            wire.declare(1, queue, DURABLE)
            bind = short(0) + shortstr(queue) + shortstr(exchange) + shortstr("a.*") + b"\0" + table()
            wire.send_method(1, "queue.bind", bind)
            wire.expect("queue.bind-ok", 1)
            wire.select_confirms()
            wire.send(publish_frames(1, exchange, "a.b", b"first"))
            wire.expect("basic.ack", 1)
            broker.kill()
        broker.start()
        with opened() as wire:
            wire.select_confirms()
            wire.send(publish_frames(1, exchange, "a.c", b"second"))
            wire.expect("basic.ack", 1)
            bodies = [wire.get(1, queue)[1] for _ in range(2)]
        expect(bodies == [b"first", b"second"], f"{queue} has {bodies}")
        broker.kill()


def what_a_first_start_made_outlives_the_power(broker):
    for number in range(8):
        broker.start_over()
        model = filled(broker)
        broker.start()
        model.check_drained({"q": read_all()})
        expect(not model.problems, f"in round {number}, {model.problems}")


# With a disk that loses what was not synced.
WITHOUT_POWER = (what_a_first_start_made_outlives_the_power,)

ALL = (
    a_second_broker_on_the_same_folder_is_refused,
    a_flipped_octet_stops_the_start_and_is_named,
    a_cut_off_tail_is_no_obstacle,
    a_lost_write_is_noticed_by_these_tests,
    what_was_declared_before_a_confirm_is_there,
)
