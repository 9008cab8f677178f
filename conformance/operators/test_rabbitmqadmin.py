"""RabbitMQ's script rabbitmqadmin (the one in Python), command by command."""

import json
import os
import subprocess
import sys
import tempfile
import unittest


def run(*arguments):
    command = [sys.executable, os.environ["RABBITMQADMIN"], *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def done(*arguments):
    """What a command prints that succeeds."""
    ended = run(*arguments)
    assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
    return ended.stdout


def listed(what, *arguments):
    return json.loads(done("--format=raw_json", "list", what, *arguments))


class RabbitmqadminTest(unittest.TestCase):
    def test_vhosts_users_and_permissions_come_and_go(self):
        done("declare", "vhost", "name=v1")
        done("declare", "user", "name=u1", "password=p1", "tags=monitoring")
        done("declare", "permission", "vhost=v1", "user=u1", "configure=.*", "write=.*", "read=^r")
        self.assertIn("v1", [one["name"] for one in listed("vhosts")])
        permissions = [one for one in listed("permissions") if one["user"] == "u1"]
        self.assertEqual(permissions[0]["read"], "^r")
        done("declare", "vhost_limit", "vhost=v1", "name=max-queues", "value=5")
        self.assertEqual(listed("vhost_limits")[0]["value"], {"max-queues": 5})
        done("delete", "vhost_limit", "vhost=v1", "name=max-queues")
        self.assertEqual(listed("vhost_limits"), [])
        done("delete", "permission", "vhost=v1", "user=u1")
        done("delete", "user", "name=u1")
        done("delete", "vhost", "name=v1")
        self.assertNotIn("u1", [one["name"] for one in listed("users")])

    def test_messages_go_through_exchange_binding_and_queue(self):
        done("declare", "exchange", "name=e1", "type=topic", "durable=true")
        done("declare", "queue", "name=q1", "durable=true", 'arguments={"x-max-length": 10}')
        done("declare", "binding", "source=e1", "destination=q1", "routing_key=a.*")
        bindings = listed("bindings", "source", "routing_key")
        self.assertIn({"source": "e1", "routing_key": "a.*"}, bindings)
        for nth in range(3):
            said = done("publish", "exchange=e1", "routing_key=a.b", f"payload=m{nth}")
            self.assertIn("Message published", said)
        said = done("publish", "routing_key=q1", "payload=direct")
        self.assertIn("Message published", said)
        got = json.loads(done("--format=raw_json", "get", "queue=q1", "count=2"))
        self.assertEqual([one["payload"] for one in got], ["m0", "m1"])
        done("get", "queue=q1", "ackmode=ack_requeue_false")
        self.assertEqual(listed("queues", "name", "messages"), [{"name": "q1", "messages": 3}])
        done("purge", "queue", "name=q1")
        done("delete", "binding", "source=e1", "destination=q1", "destination_type=queue", "properties_key=a.*")
        done("delete", "queue", "name=q1")
        done("delete", "exchange", "name=e1")

    def test_policies_and_parameters_come_and_go(self):
        done("declare", "policy", "name=p1", "pattern=^x", 'definition={"max-length": 3}', "apply-to=queues")
        done("declare", "operator_policy", "name=o1", "pattern=^x", 'definition={"max-length": 3}')
        self.assertEqual(listed("policies")[0]["definition"], {"max-length": 3})
        self.assertEqual(listed("operator_policies")[0]["name"], "o1")
        done("delete", "policy", "name=p1")
        done("delete", "operator_policy", "name=o1")
        done("declare", "parameter", "component=federation-upstream", "name=f1", 'value={"uri": "amqp://"}')
        self.assertEqual(listed("parameters")[0]["value"], {"uri": "amqp://"})
        done("delete", "parameter", "component=federation-upstream", "name=f1")

    def test_everything_is_listed_in_every_format(self):
        for what in ["users", "vhosts", "connections", "exchanges", "bindings", "permissions", "channels", "consumers",
                     "parameters", "policies", "operator_policies", "vhost_limits", "queues", "nodes"]:
            for form in ["table", "long", "tsv", "kvp", "bash", "pretty_json"]:
                with self.subTest(what=what, form=form):
                    done(f"--format={form}", "list", what)
        self.assertIn("4.3.", done("show", "overview"))

    def test_definitions_are_exported_and_imported(self):
        done("declare", "queue", "name=kept", "durable=true")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "definitions.json")
            done("export", file)
            done("delete", "queue", "name=kept")
            done("import", file)
        self.assertIn("kept", [one["name"] for one in listed("queues")])
        done("delete", "queue", "name=kept")

    def test_what_goes_wrong_fails_with_the_reason(self):
        ended = run("delete", "queue", "name=none")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Not found", ended.stdout + ended.stderr)
        ended = run("--username=stranger", "list", "queues")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Access refused", ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
