"""rabbitmqadmin in Rust (version 2), command by command. RABBITMQADMIN_NG is how it is called."""

import json
import os
import shlex
import subprocess
import tempfile
import unittest


def run(*arguments):
    command = [*shlex.split(os.environ["RABBITMQADMIN_NG"]), "--non-interactive", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def done(*arguments):
    """What a command prints that succeeds."""
    ended = run(*arguments)
    assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
    return ended.stdout


class RabbitmqadminTest(unittest.TestCase):
    def test_all_that_is_listed_and_shown_can_be_decoded(self):
        for what in ["users", "vhosts", "permissions", "connections", "channels", "queues", "exchanges", "bindings",
                     "consumers", "parameters", "policies", "operator_policies", "nodes", "vhost_limits", "user_limits",
                     "feature_flags", "deprecated_features"]:
            with self.subTest(what=what):
                done("list", what)
        for what in [["overview"], ["churn"], ["endpoint"]]:
            with self.subTest(what=what):
                done("show", *what)
        for check in [["local_alarms"], ["cluster_wide_alarms"], ["node_is_quorum_critical"],
                      ["port_listener", "--port", "5672"], ["protocol_listener", "--protocol", "amqp"]]:
            with self.subTest(check=check):
                done("health_check", *check)

    def test_objects_come_and_go(self):
        done("declare", "vhost", "--name", "v-2", "--description", "of a tool")
        done("declare", "user", "--name", "u2", "--password", "p2", "--tags", "monitoring")
        done("-V", "v-2", "declare", "permissions", "--user", "u2", "--configure", ".*", "--read", ".*", "--write", ".*")
        inside = ["-V", "v-2"]
        done(*inside, "declare", "permissions", "--user", "guest", "--configure", ".*", "--read", ".*", "--write", ".*")
        done(*inside, "declare", "queue", "--name", "q@1", "--type", "quorum", "--durable", "true")
        done(*inside, "declare", "exchange", "--name", "e-1", "--type", "topic")
        done(*inside, "declare", "binding", "--source", "e-1", "--destination-type", "queue", "--destination", "q@1",
             "--routing-key", "a.*")
        done(*inside, "declare", "policy", "--name", "p1", "--pattern", "^q", "--apply-to", "queues",
             "--definition", json.dumps({"max-length": 10}))
        done(*inside, "publish", "message", "--exchange", "e-1", "--routing-key", "a.b", "--payload", "one")
        done(*inside, "publish", "message", "--exchange", "", "--routing-key", "q@1", "--payload", "two")
        self.assertIn("one", done(*inside, "get", "messages", "--queue", "q@1", "--count", "2"))
        self.assertIn("q@1", done(*inside, "list", "queues"))
        done(*inside, "purge", "queue", "--name", "q@1")
        done(*inside, "delete", "policy", "--name", "p1")
        done(*inside, "delete", "binding", "--source", "e-1", "--destination-type", "queue", "--destination", "q@1",
             "--routing-key", "a.*")
        done(*inside, "delete", "queue", "--name", "q@1")
        done(*inside, "delete", "exchange", "--name", "e-1")
        done("delete", "user", "--name", "u2")
        done("delete", "vhost", "--name", "v-2")

    def test_definitions_are_exported_and_imported(self):
        done("declare", "queue", "--name", "kept", "--type", "classic", "--durable", "true")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "definitions.json")
            done("definitions", "export", "--file", file)
            done("delete", "queue", "--name", "kept")
            done("definitions", "import", "--file", file)
        self.assertIn("kept", done("list", "queues"))
        done("delete", "queue", "--name", "kept")

    def test_what_goes_wrong_fails(self):
        self.assertNotEqual(run("delete", "queue", "--name", "none").returncode, 0)
        self.assertNotEqual(run("--username", "stranger", "--password", "x", "list", "queues").returncode, 0)


if __name__ == "__main__":
    unittest.main()
