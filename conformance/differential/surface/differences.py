"""The differences that are known: what is listed must be there, and nothing else.

The file has a line for each, or for several that are the same but for their case, below the reason that it is there
for:

    == REASON
    SUBJECT {CASE, CASE}: WHAT RABBITMQ SHOWS => WHAT COURSER SHOWS
"""

import re
from pathlib import Path

UNEXPLAINED = "not explained yet"
# What only repeats the case.
REPEATED = [
    (re.compile(r"\{(value_negative|value_too_large|max_value_exceeded|unacceptable_type),[^}]*\}"), r"{\1,_}"),
    (re.compile(r"(expected integer, got) \w+"), r"\1 _"),
    (re.compile(r"invalid type '\w+'"), "invalid type '_'"),
]


def lines(reference, tested, together=False):
    """The differences of two observations, each a line; `together` those that are the same but for their case."""
    groups = {}
    for subject, case in {**reference, **tested}:
        pair = [seen.get((subject, case), "nothing") for seen in (reference, tested)]
        if pair[0] != pair[1]:
            for pattern, instead in REPEATED if together else ():
                pair = [pattern.sub(instead, text) for text in pair]
            groups.setdefault((subject, *pair, None if together else case), []).append(case)
    return [f"{subject} {{{', '.join(cases)}}}: {one} => {other}" for (subject, one, other, _), cases in groups.items()]


def load(path):
    """{line: its reason}."""
    listed, reason = {}, ""
    for line in Path(path).read_text().splitlines():
        if line.startswith("== "):
            reason = line[3:]
        elif line and not line.startswith("#"):
            listed[line] = reason
    return listed


def check(found, listed):
    """What is wrong: the new, the gone, and those without a reason."""
    wrong = [f"new: {line}" for line in found if line not in listed]
    wrong += [f"gone: {line}" for line in listed if line not in found]
    wrong += [f"without a reason: {line}" for line, reason in listed.items() if reason in ("", UNEXPLAINED)]
    return wrong


def note(path, found, listed):
    """Writes what was found into the file; what is new has yet to be explained."""
    reasons = dict.fromkeys([*listed.values(), UNEXPLAINED])
    text = ["# Checked by `run --surface`, and written anew by `run --surface --note`: README.md explains.", ""]
    for reason in reasons:
        belonging = [line for line in found if listed.get(line, UNEXPLAINED) == reason]
        if belonging:
            text += [f"== {reason}", *belonging, ""]
    Path(path).write_text("\n".join(text).rstrip("\n") + "\n")
