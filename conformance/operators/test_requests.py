"""The requests of KEDA's scaler, of Telegraf's input and of rabbitmq_exporter, and what they read of the answers."""

import base64
import json
import unittest
import urllib.error
import urllib.parse
import urllib.request

SERVER = "http://127.0.0.1:15672"


def call(path, method="GET", body=None, user="guest:guest"):
    request = urllib.request.Request(SERVER + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("authorization", "Basic " + base64.b64encode(user.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
            return error.code, json.loads(text) if text else None


class RequestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        call("/api/vhosts/work%2Fshop", "PUT")
        for name in ["orders", "orders.eu", "other"]:
            call(f"/api/queues/work%2Fshop/{name}", "PUT", {"durable": True})
        message = {"routing_key": "orders", "properties": {}, "payload": "x", "payload_encoding": "string"}
        # What the statistics are made from begins at the first question.
        call("/api/queues/work%2Fshop/orders")
        for _ in range(3):
            status, answer = call("/api/exchanges/work%2Fshop//publish", "POST", message)
            assert (status, answer) == (200, {"routed": True}), (status, answer)

    def test_keda_reads_the_length_and_the_rates_of_a_queue(self):
        status, queue = call("/api/queues/work%2Fshop/orders")
        self.assertEqual((status, queue["name"]), (200, "orders"))
        self.assertEqual([queue[name] for name in ["messages", "messages_ready", "messages_unacknowledged"]], [3, 3, 0])
        self.assertIsInstance(queue["message_stats"]["publish_details"]["rate"], (int, float))
        status, answer = call("/api/queues/work%2Fshop/none")
        self.assertEqual((status, answer["reason"]), (404, "Not Found"))

    def test_keda_sums_up_the_queues_that_an_expression_names(self):
        name = urllib.parse.quote("^orders")
        for vhost in ["/work%2Fshop", ""]:
            query = f"page=1&use_regex=true&pagination=false&name={name}&page_size=100"
            status, page = call(f"/api/queues{vhost}?{query}")
            self.assertEqual((status, page["page_count"], page["filtered_count"]), (200, 1, 2))
            self.assertEqual(sorted(one["name"] for one in page["items"]), ["orders", "orders.eu"])
            self.assertEqual(sum(one["messages"] for one in page["items"]), 3)

    def test_telegraf_gathers_all_that_it_asks_for(self):
        _, overview = call("/api/overview")
        totals = ["channels", "connections", "consumers", "exchanges", "queues"]
        self.assertTrue(all(isinstance(overview["object_totals"][one], int) for one in totals), overview)
        self.assertTrue(all(one in overview["queue_totals"] for one in ["messages", "messages_ready"]), overview)
        self.assertTrue(any(one["protocol"] == "amqp" for one in overview["listeners"]))
        _, nodes = call("/api/nodes")
        for member in ["disk_free", "disk_free_limit", "fd_total", "fd_used", "mem_limit", "mem_used", "proc_total",
                       "proc_used", "run_queue", "uptime", "io_read_avg_time", "gc_num_details"]:
            with self.subTest(member=member):
                self.assertIn(member, nodes[0])
        node = urllib.parse.quote(nodes[0]["name"])
        _, memory = call(f"/api/nodes/{node}/memory")
        self.assertIsInstance(memory["memory"]["total"]["allocated"], int)
        _, queues = call("/api/queues")
        self.assertEqual(len(queues), 3)
        _, exchanges = call("/api/exchanges")
        published = [one for one in exchanges if one["vhost"] == "work/shop" and one["name"] == ""]
        self.assertEqual(published[0]["message_stats"]["publish_in"], 3)
        self.assertEqual(call("/api/federation-links"), (200, []))

    def test_telegraf_shows_error_and_reason_of_a_refusal(self):
        status, answer = call("/api/overview", user="guest:wrong")
        self.assertEqual((status, answer["error"], answer["reason"]), (401, "not_authorized", "Not_Authorized"))

    def test_the_exporter_finds_its_lists(self):
        for path in ["/api/overview", "/api/nodes", "/api/connections", "/api/exchanges", "/api/queues",
                     "/api/shovels", "/api/federation-links", "/api/aliveness-test/%2F"]:
            with self.subTest(path=path):
                self.assertEqual(call(path)[0], 200)
        columns = "/api/queues?columns=vhost,name,messages,message_stats.publish,policy"
        self.assertEqual(set(call(columns)[1][0]), {"vhost", "name", "messages", "message_stats"})


if __name__ == "__main__":
    unittest.main()
