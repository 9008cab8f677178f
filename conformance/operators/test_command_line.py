"""The commands of docs/command-line.md, as they stand there: each has to end well."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BINARY = os.environ["COURSER_TEST_BINARY"]
# The data folder of the broker that runs, and its HTTP API.
DATA = os.environ["COURSER_TEST_DATA"]
API = "http://127.0.0.1:15672"
# Names of the page, and what has their place here.
REPLACED = {
    "sudo ": "",
    "https://broker.example:15671": API,
    # Without TLS here.
    " --ca ca.pem": "",
    "/srv/courser": DATA,
    "/var/log/courser.log": "courser.log",
}
CONTEXT = f"courser ctl context add prod --url {API} --user ops --password-file ~/.ops"
PATIENCE_S = 30


def blocks():
    """The title of each section that has commands, and these."""
    for section in PAGE.read_text().split("\n## "):
        title = section.partition("\n")[0].lstrip("# ")
        commands = re.findall(r"^\$ (.+)$", section, re.MULTILINE)
        probes = re.findall(r"exec: \{ command: \[(.+)\] \}", section)
        commands += [probe.replace(",", "") for probe in probes]
        if commands:
            yield title, commands


class CommandLineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "courser").symlink_to(BINARY)
        (cls.folder / "password.txt").write_text("alice's password\n")
        (cls.folder / ".ops").write_text("a password of ops\n")
        (cls.folder / "courser.log").write_text("a line of the log\n")
        cls.well("courser ctl add_user ops < .ops", "courser ctl set_user_tags ops administrator")
        cls.well("courser ctl add_vhost orders", "courser ctl set_permissions -p orders ops '.*' '.*' '.*'")
        cls.well("courser ctl set_permissions ops '.*' '.*' '.*'")
        queues = [{"name": name, "vhost": "orders", "durable": True} for name in ("failed", "parked")]
        (cls.folder / "queues.json").write_text(json.dumps({"queues": queues}))
        cls.well("courser ctl import_definitions queues.json")
        cls.publish("orders", "failed", "was refused")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def publish(cls, vhost, queue, payload):
        message = {"routing_key": queue, "properties": {}, "payload": payload, "payload_encoding": "string"}
        request = urllib.request.Request(f"{API}/api/exchanges/{vhost}/amq.default/publish", json.dumps(message).encode())
        request.add_header("Authorization", "Basic " + base64.b64encode(b"ops:a password of ops").decode())
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert json.load(answer) == {"routed": True}

    @classmethod
    def run_command(cls, command):
        path = f"{cls.folder / 'bin'}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(cls.folder), "COURSER_DATA_DIR": DATA}
        return subprocess.run(
            ["bash", "-c", command], cwd=cls.folder, env=environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
        )

    @classmethod
    def well(cls, *commands):
        for command in commands:
            ended = cls.run_command(command)
            assert ended.returncode == 0, (command, ended.returncode, ended.stdout, ended.stderr)

    def follow(self, title):
        for command in dict(blocks())[title]:
            for there, here in REPLACED.items():
                command = command.replace(there, here)
            self.well(command)

    def test_sections_are_those_that_are_followed_here(self):
        titles = ["The command line", "Which broker", "Contexts: saved brokers", "Probes", "What happens",
                  "Publishing and consuming", "Messages", "Questions", "The journal", "Suspended listeners", "Settings at run time",
                  "Cluster", "Live view", "Support bundle"]
        self.assertEqual([title for title, _ in blocks()], titles)

    def test_commands_do_what_the_page_begins_with(self):
        self.follow("The command line")

    def test_a_broker_is_found_by_its_folder_and_by_its_address(self):
        self.follow("Which broker")

    def test_contexts_are_saved_used_and_removed(self):
        self.follow("Contexts: saved brokers")

    def test_probes_succeed(self):
        self.follow("Probes")

    def test_what_happens_is_followed_and_sizes_are_counted(self):
        for command in dict(blocks())["What happens"]:
            # Events are followed until they are over.
            self.well(f"{command} --duration 1" if "event_stream" in command else command)

    def test_messages_are_published_and_consumed(self):
        self.follow("Publishing and consuming")

    def test_messages_are_looked_at_moved_and_purged(self):
        self.follow("Messages")
        self.assertEqual((self.folder / "payload.bin").read_text(), "was refused")

    def test_questions_are_answered(self):
        self.follow("Questions")

    def test_the_journal_is_read_while_the_broker_runs(self):
        scrub, status, _of_node = dict(blocks())["The journal"]
        self.assertIn("nothing is damaged", self.run_command(scrub).stdout)
        self.assertIn("All of the journal was read", self.run_command(status).stdout)

    def test_suspended_listeners_take_no_connections_until_they_are_resumed(self):
        suspend, attention, resume = dict(blocks())["Suspended listeners"]
        self.well(suspend)
        self.assertIn("listeners for clients are suspended", self.run_command(attention).stdout)
        self.assertNotEqual(self.run_command("courser ctl check_protocol_listener amqp").returncode, 0)
        self.well(resume, "courser ctl check_protocol_listener amqp")
        self.assertNotIn("suspended", self.run_command(attention).stdout)

    def test_settings_are_changed_while_the_broker_runs(self):
        level, limit, of_node = dict(blocks())["Settings at run time"]
        self.well(level, limit)
        environment = self.run_command("courser ctl environment").stdout
        for changed in ("courser::cluster=debug", "4294967296"):
            self.assertIn(changed, environment)
        self.assertEqual(self.run_command(of_node).returncode, 65)

    def test_a_broker_by_itself_says_of_commands_for_a_cluster_that_it_is_in_none(self):
        commands = dict(blocks())["Cluster"]
        self.assertGreater(len(commands), 4)
        for command in commands:
            ended = self.run_command(command)
            self.assertEqual(ended.returncode, 65, (command, ended.stdout, ended.stderr))
            self.assertIn("not a node of a cluster", ended.stderr)

    def test_the_live_view_has_each_table(self):
        self.well(CONTEXT)
        for command in dict(blocks())["Live view"]:
            # There is no terminal here.
            self.well(command if "--once" in command else f"{command} --once")
        self.well("courser ctl context remove prod")

    def test_a_support_bundle_is_written(self):
        self.follow("Support bundle")
        self.assertGreater((self.folder / "broker.tar.gz").stat().st_size, 1000)


if __name__ == "__main__":
    unittest.main()
