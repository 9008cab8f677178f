"""Random programs over few names, so that what they do meets. The same seed gives the same program."""

import random

import values
from execute import EXCHANGES, QUEUES, UNFOLLOWED

# What a program is about: the operations that it does more often than others, and which arguments its queues have.
THEMES = {
    "anything": ({}, None),
    "acknowledge": ({"consume": 6, "settle": 20, "publish": 10, "recover": 2, "qos": 2, "get": 6}, ()),
    "limits": ({"publish": 20, "get": 6, "purge": 2}, ("x-max-length", "x-max-length-bytes", "x-overflow")),
    "dead letters": ({"publish": 14, "settle": 10, "get": 6, "consume": 3}, values.DEAD_LETTERING),
    "times": ({"publish": 14, "get": 6, "consume": 3, "settle": 4}, ("x-message-ttl", "x-expires", *values.DEAD_LETTERING)),
    "routing": ({"bind": 14, "unbind": 6, "bind exchange": 10, "unbind exchange": 3, "publish": 18}, ()),
    # RabbitMQ routes at the publish, Courser at the commit: what there is to route to stays the same.
    "transactions": (
        {"tx": 14, "publish": 10, "settle": 10, "get": 5, "consume": 3, "bind": 0, "unbind": 0, "bind exchange": 0,
         "unbind exchange": 0, "declare queue": 0, "declare exchange": 0, "delete queue": 0, "delete exchange": 0},
        ("x-max-length", "x-overflow"),
    ),
    "consumers": ({"consume": 16, "cancel": 8, "publish": 10, "settle": 10, "qos": 4}, ("x-single-active-consumer", "x-max-priority")),
    "lives": ({"delete queue": 6, "delete exchange": 5, "drop": 4, "close": 4, "declare queue": 12, "declare exchange": 8, "consume": 6, "cancel": 5, "unbind": 4}, ()),
    "mistakes": ({"declare queue": 14, "declare exchange": 10, "bind": 5, "consume": 5}, None),
}  # fmt: skip
ALWAYS = {
    "declare queue": 3, "declare exchange": 2, "bind": 3, "unbind": 1, "bind exchange": 1, "unbind exchange": 0.3,
    "publish": 12, "get": 3, "consume": 3, "cancel": 1, "settle": 5, "recover": 0.5, "qos": 1, "confirm": 1,
    "purge": 0.5, "delete queue": 0.5, "delete exchange": 0.4, "drop": 0.3, "close": 0.6, "answer": 0.5,
}  # fmt: skip


def program(seed, steps):
    return Generator(seed).program(steps)


class Generator:
    """One program in the making."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.theme = self.random.choice(list(THEMES))
        weights, self.arguments = THEMES[self.theme]
        self.weights = {**{name: weight * self.random.choice((0, 1, 1, 1)) for name, weight in ALWAYS.items()}, **weights}
        # In most programs nearly nothing is wrong, so that they get far.
        self.wrong = 0.5 if self.theme == "mistakes" else self.random.choice((0, 0.02, 0.1))
        self.queues = QUEUES[: self.random.randint(2, len(QUEUES))]
        self.exchanges = EXCHANGES[: self.random.randint(1, len(EXCHANGES))]
        # Times that pass make a program slow.
        self.timed = self.theme == "times" or self.random.random() < 0.1
        self.durable = self.random.random() < 0.3
        self.kinds = {name: self.pick(values.EXCHANGE_TYPES) for name in EXCHANGES}
        self.bodies = 0
        # A dead letter may come before or after what was published right behind it.
        self.dying = False
        # RabbitMQ looks at the times of the lowest priority only; here none is late.
        self.ranked = False
        # RabbitMQ counts what was polled before a limit for the channel came, and never lets go of it.
        self.polls_for_good = self.some(0.5)
        self.channels = self.pick((["a1"], ["a1", "a2"], ["a1", "a2", "b1"], ["a1", "b1"]))
        self.seen = {}

    # -- choices

    def pick(self, choices):
        return self.random.choice(choices)

    def some(self, likelihood):
        return self.random.random() < likelihood

    def flags(self, likelihood, *names):
        return {name: True for name in names if self.some(likelihood)}

    def queue(self):
        return self.pick(self.queues) if not self.some(self.wrong / 4) else self.pick(("", "missing", "amq.q", QUEUES[3]))

    def exchange(self):
        choice = self.random.random()
        if choice < 0.2:
            return self.pick(("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"))
        if choice < 0.2 + self.wrong / 4:
            return self.pick(("", "missing", EXCHANGES[3]))
        return self.pick(self.exchanges)

    def key(self):
        return self.pick(("", "a", "b", "a.b", "a.b.c", "q1", "q2"))

    def binding(self, source):
        kind = self.kinds.get(source, source)
        arguments = {}
        if "headers" in kind or kind == "amq.match" or self.some(0.05):
            arguments = values.header_match(self)
        key = self.key()
        if kind in ("topic", "amq.topic"):
            key = self.pick(("#", "*", "a.*", "*.b", "#.b", "a.#", "a.#.c", "*.*", "a", "a.b", "#.#", ""))
        if kind == "x-consistent-hash":
            key = "1" if not self.some(self.wrong) else self.pick(("0", "-1", "x", "1.5", ""))
        return {"routing_key": key, "arguments": arguments}

    # -- steps

    def program(self, steps):
        """First something to work with, then anything."""
        made = [self.step("declare queue", queue=name) for name in self.queues if self.some(0.9)]
        made += [self.step("declare exchange", exchange=name) for name in self.exchanges if self.some(0.9)]
        made += [self.step("bind") for _ in range(self.random.randint(1, 4))]
        if self.some(0.4):
            made.append(self.step("confirm"))
        if self.theme == "transactions":
            made.append({"on": self.channels[0], "do": [["tx.select", {}]]})
        names, weights = list(self.weights), list(self.weights.values())
        while len(made) < steps:
            made.append(self.step(self.random.choices(names, weights)[0]))
        return [step for step in made if step]

    def step(self, what, **given):
        """One step that does `what`, now and then several times or with something else in the same write."""
        on = self.pick(self.channels)
        do = [getattr(self, what.replace(" ", "_"))(**given)]
        if what in ("drop", "close") or do[0][0] in UNFOLLOWED:
            return {"on": on, "do": do}
        if what == "publish":
            more = 0 if self.dying else self.random.choice((0, 0, 0, 1, 2, 4))
            do += [self.publish() for _ in range(more)]
        elif not what.startswith("delete") and self.some(0.08):
            do.append(self.pick((self.publish, self.get, self.consume, self.settle))())
        return {"on": on, "do": do}

    def declare_queue(self, queue=None):
        given, queue = queue, queue or self.queue()
        # Nothing that is made outlives the program: not this name, not a server-named queue.
        if queue == "missing":
            queue = self.queues[0]
        if given is None and self.some(0.25):
            return ["queue.declare", {"queue": queue, "passive": True}]
        if given is None and self.some(0.7) and f"queue {queue}" in self.seen:
            fields = dict(self.seen[f"queue {queue}"])
        else:
            fields = {"queue": queue, "arguments": values.queue_arguments(self)}
            fields |= self.flags(0.08, "exclusive", "auto_delete") | self.flags(0.9 if self.durable else 0.2, "durable")
            if queue == "":
                fields["exclusive"] = True
        self.seen[f"queue {queue}"] = fields
        return ["queue.declare", fields | self.flags(0.03, "nowait")]

    def declare_exchange(self, exchange=None):
        given, exchange = exchange, exchange or self.exchange()
        if exchange == "missing":
            exchange = self.exchanges[0]
        fields = {"exchange": exchange, "type": self.kinds.get(exchange, "direct")}
        if given is None and self.some(0.25):
            return ["exchange.declare", fields | {"passive": True}]
        if given is None and self.some(0.6) and f"exchange {exchange}" in self.seen:
            fields = dict(self.seen[f"exchange {exchange}"])
        else:
            fields |= {"arguments": values.exchange_arguments(self, fields["type"])}
            fields |= self.flags(0.08, "auto_delete", "internal") | self.flags(0.9 if self.durable else 0.2, "durable")
            if given is None and self.some(self.wrong):
                fields["type"] = self.pick(("direct", "fanout"))
        self.seen[f"exchange {exchange}"] = fields
        return ["exchange.declare", fields | self.flags(0.03, "nowait")]

    def bind(self):
        source = self.exchange()
        # One destination alone: which of several a hash chooses is the broker's affair.
        queue = "q1" if self.kinds.get(source) in values.CHOOSING else self.queue()
        return ["queue.bind", {"queue": queue, "exchange": source} | self.binding(source) | self.flags(0.03, "nowait")]

    def unbind(self):
        source = self.exchange()
        return ["queue.unbind", {"queue": self.queue(), "exchange": source} | self.binding(source)]

    def bind_exchange(self, method="exchange.bind"):
        source = self.exchange()
        if self.kinds.get(source) in (*values.CHOOSING, "x-recent-history"):
            return self.bind()
        # A binding between two exchanges that no program can delete would outlive the program.
        destination = self.pick(self.exchanges) if source.startswith("amq.") else self.exchange()
        fields = {"destination": destination, "source": source} | self.binding(source)
        return [method, fields | self.flags(0.03, "nowait")]

    def unbind_exchange(self):
        return self.bind_exchange("exchange.unbind")

    def publish(self):
        self.bodies += 1
        body = f"m{self.bodies}" + "." * self.pick((0, 0, 0, 3, 10, 40))
        fields = {"exchange": "", "routing_key": self.queue()}
        if self.some(0.5):
            fields = {"exchange": self.exchange(), "routing_key": self.key()}
        fields |= {"properties": values.properties(self), "body": body}
        return ["basic.publish", fields | self.flags(0.25, "mandatory") | self.flags(self.wrong / 20, "immediate")]

    def answer(self):
        if self.some(0.4):
            fields = {"queue": "amq.rabbitmq.reply-to", "consumer_tag": "answers", "no_ack": not self.some(0.1)}
            return ["basic.consume", fields]
        if self.some(0.5):
            properties = {"reply_to": "amq.rabbitmq.reply-to"}
            self.bodies += 1
            fields = {"exchange": "", "routing_key": self.queue(), "properties": properties, "body": f"m{self.bodies}"}
            return ["basic.publish", fields]
        self.bodies += 1
        return ["answer", {"body": f"m{self.bodies}"}]

    def get(self):
        return ["basic.get", {"queue": self.queue()} | self.flags(1 if self.polls_for_good else 0.3, "no_ack")]

    def consume(self):
        fields = {"queue": self.queue(), "consumer_tag": self.pick(("c1", "c2", "c3", "c4")) + self.pick("ab")}
        fields |= self.flags(0.25, "no_ack") | self.flags(0.06, "exclusive", "no_local", "nowait")
        return ["basic.consume", fields | {"arguments": values.consumer_arguments(self)}]

    def cancel(self):
        tag = self.pick(("c1", "c2", "c3", "c4")) + self.pick("ab")
        return ["basic.cancel", {"consumer_tag": tag} | self.flags(0.1, "nowait")]

    def settle(self):
        which = {"nth": self.random.randint(0, 5)}
        if self.some(self.wrong / 3):
            which = {"delivery_tag": self.pick((1, 99, 2**40))}
        method = self.pick(("basic.ack", "basic.nack", "basic.reject"))
        fields = which | ({} if method == "basic.ack" else self.flags(0.5, "requeue"))
        if method != "basic.reject":
            fields |= self.flags(0.25, "multiple")
            if fields.get("multiple") and self.some(0.2):
                fields = fields | {"nth": 999}
        return [method, fields]

    def recover(self):
        return ["basic.recover", {"requeue": not self.some(self.wrong / 2)}]

    def qos(self):
        fields = {"prefetch_count": self.pick((0, 1, 1, 2, 3, 10))}
        fields |= self.flags(0.3 if self.polls_for_good else 0, "global")
        return ["basic.qos", fields | ({"prefetch_size": 1} if self.some(self.wrong / 3) else {})]

    def confirm(self):
        return ["confirm.select", self.flags(0.1, "nowait")]

    def tx(self):
        return [self.pick(("tx.select", "tx.commit", "tx.commit", "tx.commit", "tx.rollback")), {}]

    def purge(self):
        return ["queue.purge", {"queue": self.queue()} | self.flags(0.1, "nowait")]

    def delete_queue(self):
        flags = self.flags(0.25, "if_unused", "if_empty") | self.flags(0.05, "nowait")
        return ["queue.delete", {"queue": self.queue()} | flags]

    def delete_exchange(self):
        flags = self.flags(0.3, "if_unused") | self.flags(0.05, "nowait")
        return ["exchange.delete", {"exchange": self.exchange()} | flags]

    def drop(self):
        return ["drop", {}]

    def close(self):
        return [self.pick(("channel.close", "channel.close", "connection.close")), {"code": 200}]
