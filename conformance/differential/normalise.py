"""What two brokers may show differently, each with its reason. Everything else is a difference."""

import json
import re

# What a broker makes up.
MADE_UP = [
    (re.compile(r"amq\.gen-[A-Za-z0-9_-]+"), "amq.gen-*"),
    (re.compile(r"amq\.ctag-[A-Za-z0-9_-]+"), "amq.ctag-*"),
    (re.compile(r"amq\.rabbitmq\.reply-to\.[^\"\\]+"), "amq.rabbitmq.reply-to.*"),
    # Each runner has a vhost of its own.
    (re.compile(r"vhost '[^']*'"), "vhost '/'"),
]

# RabbitMQ tells of the last death too since 3.13.
NEWER_HEADERS = ("x-last-death-queue", "x-last-death-reason", "x-last-death-exchange")


# What the reference says where nothing that comes after can be compared.
INCOMPARABLE = (
    # It has crashed.
    "INTERNAL_ERROR",
    # Some of its arguments are for one type of queue; here all types take them.
    "of queue type rabbit_classic_queue",
)


def is_incomparable(reference):
    """Whether the program has done what the reference cannot or must not do."""
    text = json.dumps(reference)
    return any(words in text for words in INCOMPARABLE)


def normalise(observed):
    """The same observation without what may differ."""
    text = json.dumps(observed)
    for pattern, instead in MADE_UP:
        text = pattern.sub(instead, text)
    observed = json.loads(text, object_hook=in_table)
    ended = {name for name, what in observed.items() if isinstance(what, list)}
    for name, what in list(observed.items()):
        if name not in ended:
            observed[name] = on_channel(what, name[0] in ended)
    return {name: what for name, what in observed.items() if what}


def on_channel(what, ended):
    """Rules for what was seen on one channel; `ended` if its connection has ended."""
    replies = what.get("replies", [])
    if ended or any(name == "channel.close" for name, _ in replies):
        # What was on its way when the channel was closed for a mistake may still come or not.
        what = {"replies": [reply for reply in replies if reply[0] == "channel.close"]}
    else:
        # RabbitMQ answers these when the queue has done so, and what came after them before.
        replies.sort(key=lambda reply: reply[0] not in ("basic.consume-ok", "basic.cancel-ok"))
    return {name: value for name, value in what.items() if value}


def in_table(table):
    """Rules for what is in headers, wherever they are."""
    for name in NEWER_HEADERS:
        table.pop(name, None)
    if isinstance(table.get("x-death"), list):
        for death in table["x-death"]:
            if isinstance(death, dict):
                death.pop("time", None)
    return table
