"""The parts of `surface` that need no broker."""

import tempfile
import unittest
from pathlib import Path

from surface import declarations, differences, reads, writes
from surface.web import shape

ONE = {("queue", "1"): "406 bad", ("queue", "2"): "406 bad", ("queue", "3"): "ok"}
OTHER = {("queue", "1"): "ok", ("queue", "2"): "ok", ("queue", "3"): "ok"}
LINE = "queue {1, 2}: 406 bad => ok"


class Differences(unittest.TestCase):
    def test_those_of_a_subject_share_a_line(self):
        self.assertEqual(differences.lines(ONE, OTHER, together=True), [LINE])
        self.assertEqual(differences.lines({}, {("q", "1"): "ok"}), ["q {1}: nothing => ok"])

    def test_those_that_may_have_other_reasons_do_not(self):
        self.assertEqual(differences.lines(ONE, OTHER), [LINE.replace("1, 2", case) for case in ("1", "2")])

    def test_what_a_text_repeats_of_its_case_makes_no_line_of_its_own(self):
        texts = ['"expected integer, got double"', '"expected integer, got bool"']
        one = {("queue", str(number)): text for number, text in enumerate(texts)}
        self.assertEqual(len(differences.lines(one, {}, together=True)), 1)

    def test_a_new_one_and_one_that_is_gone_are_wrong(self):
        self.assertEqual(differences.check([LINE], {LINE: "why"}), [])
        self.assertEqual(differences.check([LINE], {}), [f"new: {LINE}"])
        self.assertEqual(differences.check([], {LINE: "why"}), [f"gone: {LINE}"])

    def test_one_without_a_reason_is_wrong(self):
        for reason in ("", differences.UNEXPLAINED):
            self.assertEqual(differences.check([LINE], {LINE: reason}), [f"without a reason: {LINE}"])

    def test_a_noted_list_keeps_the_reasons_of_what_is_still_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "list")
            differences.note(path, [LINE, "new"], {LINE: "why", "gone": "once"})
            self.assertEqual(differences.load(path), {LINE: "why", "new": differences.UNEXPLAINED})

    def test_all_that_is_listed_has_a_reason(self):
        listed = differences.load(Path(differences.__file__).with_name("differences.txt"))
        self.assertEqual(differences.check(list(listed), listed), [])


class Shapes(unittest.TestCase):
    def test_members_have_all_the_types_that_they_have_anywhere(self):
        said = [{"a": 1}, {"a": "x", "b": {"c": None}}]
        members = {"": "list", "[]": "object", "[].a": "number text", "[].b": "object", "[].b.c": "null"}
        self.assertEqual({name: " ".join(sorted(types)) for name, types in shape(said).items()}, members)

    def test_members_of_what_the_other_does_not_have_are_left_out(self):
        seen = {("GET x", "itself"): "list", ("GET x", "[].a"): "object", ("GET x", "[].a.b"): "number"}
        kept = reads.outermost(seen, {("GET x", "itself"): "list"})
        self.assertEqual(list(kept), [("GET x", "itself"), ("GET x", "[].a")])


class Cases(unittest.TestCase):
    def test_no_two_have_the_same_name(self):
        names = [name for name, _ in declarations.cases()]
        self.assertEqual(len(names), len(set(names)))

    def test_what_a_case_makes_it_takes_away(self):
        for name, calls in declarations.cases():
            made = {fields["queue"] for method, fields in calls if method == "queue.declare"}
            undone = {fields["queue"] for method, fields in declarations.undone(calls) if method == "queue.delete"}
            self.assertEqual(made, undone, name)

    def test_what_is_written_twice_is_told_apart(self):
        seen = {}
        for _ in range(3):
            seen[writes.named(seen, "PUT x", {"a": None})] = "201"
        self.assertEqual([case for _, case in seen], ['{"a": null}', '{"a": null} again', '{"a": null} again again'])

    def test_what_is_written_is_not_what_is_read(self):
        self.assertFalse([path for method, path, _ in writes.steps() if method == "GET"])


if __name__ == "__main__":
    unittest.main()
