"""An HTTP API of one broker: a request and what came of it, without anything a client adds by itself."""

import base64
import http.client
import json
from urllib.parse import unquote, urlsplit


# RabbitMQ may take half a minute to import definitions.
TIMEOUT_S = 300


class Web:
    """One connection at a time; `uri` is http://USER:PASSWORD@HOST:PORT."""

    def __init__(self, uri):
        parts = urlsplit(uri)
        self.address = parts.hostname, parts.port
        self.user = unquote(parts.username)
        self.login = f"{self.user}:{unquote(parts.password)}"

    def ask(self, method, path, body=None, login=None):
        """(status, what the body says, as values where it is JSON). `body` is text, or what becomes JSON."""
        credentials = base64.b64encode((self.login if login is None else login).encode()).decode()
        headers = {"Authorization": f"Basic {credentials}"} if login != "" else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, str) else json.dumps(body)
        connection = http.client.HTTPConnection(*self.address, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text and "no JSON"


TYPES = {str: "text", bool: "flag", int: "number", float: "number", type(None): "null", dict: "object", list: "list"}


def shape(value, path=""):
    """{member: the types of its values} of an answer; `[]` stands for each of a list."""
    found = {path: {TYPES[type(value)]}}
    inner = []
    if isinstance(value, dict):
        inner = [(f"{path}.{name}", one) for name, one in value.items()]
    elif isinstance(value, list):
        inner = [(f"{path}[]", one) for one in value]
    for name, one in inner:
        for member, types in shape(one, name).items():
            found.setdefault(member, set()).update(types)
    return found
