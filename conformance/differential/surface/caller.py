"""A client that calls one method after the other and says in a few words how each was answered."""

import re
from urllib.parse import unquote, urlsplit

import codec
from peer import Connection


class Caller:
    """One channel of a broker, opened again when it was closed, as is its connection."""

    def __init__(self, uri, vhost):
        parts = urlsplit(uri)
        self.address = parts.hostname, parts.port
        self.login = unquote(parts.username), unquote(parts.password)
        self.vhost = vhost
        self.connection, self.is_open = None, False

    def call(self, name, fields):
        """`ok`, or the code and text of the close, or what else became of it."""
        try:
            if not self.is_open:
                self.connection = self.connection or Connection(self.address, *self.login, self.vhost)
                self.connection.send(1, "channel.open")
                self.await_answer("channel.open-ok")
            self.connection.send(1, name, fields)
            return self.await_answer(f"{name}-ok")
        except EOFError:
            self.end()
            return "the socket ended without a word"
        except TimeoutError:
            self.end()
            return "no answer"

    def publish(self, queue, properties, body):
        """A message for a queue; nothing is awaited."""
        self.connection.socket.sendall(
            codec.method(1, "basic.publish", {"routing_key": queue}) + codec.content(1, properties, body)
        )

    def end(self):
        """Ends the connection, if there is one."""
        if self.connection:
            self.connection.socket.close()
        self.connection, self.is_open = None, False

    def await_answer(self, wanted):
        while True:
            for kind, _, payload in self.connection.frames():
                if kind != codec.METHOD:
                    continue
                name, fields = codec.read_method(payload)
                if name == wanted:
                    self.is_open = True
                    return "ok"
                if name == "basic.get-empty":
                    return "empty"
                if name == "channel.close":
                    self.connection.send(1, "channel.close-ok")
                    self.is_open = False
                    return in_words(fields)
                if name == "connection.close":
                    self.connection.send(0, "connection.close-ok")
                    self.end()
                    return f"connection {in_words(fields)}"
            self.connection.receive()


def in_words(close):
    """A close, without the vhost's own name and without the name of the code."""
    text = re.sub(r"vhost '[^']*'", "vhost '/'", " ".join(close["text"].split("\n")))
    return f"{close['code']} {text.partition(' - ')[2] or text}"
