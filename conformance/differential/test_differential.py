"""The parts of the tester that need no broker: `python3 -m unittest` in this folder."""

import copy
import unittest

import codec
import generate
from execute import AT_ONCE, UNFOLLOWED
from normalise import is_incomparable, normalise
from peer import Channel
from shrink import shrink


class Codec(unittest.TestCase):
    def test_a_table_comes_back_with_its_types(self):
        table = {
            "int": 1, "long": 2**40, "text": "a", "flag": True, "nothing": None, "real": 2.5, "short": ["@", "s", 3],
            "small long": ["@", "l", 7], "list": [1, "a", {"k": False}], "time": ["@", "T", 5], "bytes": ["@", "x", "ab"],
        }  # fmt: skip
        packed = codec.pack("t", table)
        self.assertEqual(codec.Reader(packed).read("t"), table)

    def test_a_method_comes_back(self):
        fields = {"queue": "q", "durable": True, "nowait": True, "arguments": {"x-max-length": 3}}
        frame = codec.method(1, "queue.declare", fields)
        name, read = codec.read_method(frame[7:-1])
        self.assertEqual(name, "queue.declare")
        self.assertEqual(read, fields | {"passive": False, "exclusive": False, "auto_delete": False})

    def test_properties_come_back(self):
        properties = {"headers": {"h": 1}, "delivery_mode": 2, "expiration": "10", "timestamp": 5, "app_id": "a"}
        header = codec.content(1, properties, "body")
        size = int.from_bytes(header[3:7], "big")
        self.assertEqual(codec.read_header(header[7 : 7 + size]), (properties, 4))


class Deliveries(unittest.TestCase):
    def setUp(self):
        self.channel = Channel(1)
        for tag, (source, body) in enumerate([("c1", "m2"), ("c1", "m1"), ("c2", "m3")], 1):
            self.channel.outstanding[tag] = (source, body)

    def test_one_is_named_by_what_it_is(self):
        self.assertEqual(self.channel.settle(0, False), 2)
        self.assertEqual(self.channel.settle(0, False), 1)

    def test_several_of_several_consumers_are_all(self):
        self.assertEqual(self.channel.settle(0, True), 3)
        self.assertEqual(self.channel.outstanding, {})

    def test_a_rollback_brings_them_back(self):
        self.channel.sent("tx.select", {})
        self.channel.settle(0, True)
        self.channel.sent("tx.rollback", {})
        self.assertEqual(len(self.channel.outstanding), 3)

    def test_confirms_are_told_by_what_they_confirm(self):
        self.channel.sent("confirm.select", {})
        for body in ("a", "b", "c"):
            self.channel.sent("basic.publish", {}, body)
        self.channel.take("basic.ack", {"delivery_tag": 2, "multiple": True})
        self.channel.take("basic.nack", {"delivery_tag": 3, "multiple": False})
        seen = self.channel.observed()
        self.assertEqual((seen["acked"], seen["nacked"]), (["a", "b"], ["c"]))


class Normaliser(unittest.TestCase):
    def same(self, one, other):
        self.assertEqual(normalise(copy.deepcopy(one)), normalise(copy.deepcopy(other)))

    def test_names_that_brokers_make_up_are_equal(self):
        seen = [{"a1": {"replies": [["queue.declare-ok", {"queue": name}]]}} for name in ("amq.gen-abc", "amq.gen-XY_z")]
        self.same(*seen)

    def test_times_of_deaths_are_left_out(self):
        seen = [{"a1": {"returns": [{"x-death": [{"queue": "q", "time": time}]}]}} for time in (1, 2)]
        self.same(*seen)

    def test_where_a_channel_was_closed_nothing_else_counts(self):
        close = ["channel.close", {"code": 404}]
        self.same({"a1": {"replies": [close]}}, {"a1": {"replies": [["basic.consume-ok", {}], close], "acked": ["m1"]}})

    def test_another_text_is_a_difference(self):
        one, other = ({"a1": {"replies": [["channel.close", {"text": text}]]}} for text in ("a", "b"))
        self.assertNotEqual(normalise(one), normalise(other))

    def test_nothing_is_compared_with_a_crash(self):
        self.assertTrue(is_incomparable({"a": ["connection.close", {"code": 541, "text": "INTERNAL_ERROR"}]}))
        self.assertFalse(is_incomparable({"a": ["connection.close", {"code": 540}]}))


class Shrinker(unittest.TestCase):
    def test_only_what_the_difference_needs_is_left(self):
        program = generate.program(7, 40)
        program[25]["do"].append(["queue.declare", {"queue": "q", "durable": True, "arguments": {"bad": 1, "good": 2}}])

        def differs(smaller):
            return '"bad"' in str(smaller).replace("'", '"')

        declare = ["queue.declare", {"queue": "q", "arguments": {"bad": 1}}]
        self.assertEqual([step["do"] for step in shrink(program, differs, tries=4000)], [[declare]])


class Programs(unittest.TestCase):
    def test_a_seed_is_a_program(self):
        self.assertEqual(generate.program(1, 30), generate.program(1, 30))
        self.assertNotEqual(generate.program(1, 30), generate.program(2, 30))

    def test_what_must_be_last_in_a_step_is(self):
        for seed in range(300):
            for step in generate.program(seed, 30):
                for name, fields in step["do"]:
                    known = name in codec.METHODS or name in ("answer", "drop")
                    self.assertTrue(known and isinstance(fields, dict), name)
                self.assertFalse({name for name, _ in step["do"][:-1]} & UNFOLLOWED)

    def test_what_is_done_at_once_is_answered(self):
        self.assertTrue(all(f"{name}-ok" in codec.METHODS for name in AT_ONCE))


if __name__ == "__main__":
    unittest.main()
