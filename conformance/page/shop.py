"""A shop whose programs keep a broker busy, for pictures of its page: shop.py PORT, until it is ended."""

import json
import random
import sys
import threading
import time
import uuid

import pika

PORT = int(sys.argv[1])
STATES = {"created": 4, "paid": 2, "packed": 1}
ORDERS_PER_S = 30


def connect() -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", PORT))


def sell() -> None:
    channel = connect().channel()
    channel.confirm_delivery()
    while True:
        state = random.choices(list(STATES), list(STATES.values()))[0]
        order = {
            "order": random.randrange(4000, 5000),
            "state": state,
            "total": round(random.uniform(5, 200), 2),
            "customer": {"id": random.randrange(1000), "country": random.choice(["fr", "it", "se"])},
        }
        properties = pika.BasicProperties(
            content_type="application/json", delivery_mode=2, message_id=str(uuid.uuid4())[:13],
            headers={"source": "shop-1", "attempt": 1},
        )
        channel.basic_publish("orders", f"order.{state}", json.dumps(order), properties)
        time.sleep(random.expovariate(ORDERS_PER_S))


def work(queue: str, prefetch: int, seconds: float, refused: float = 0) -> None:
    """Takes messages, some time for each, and refuses some."""
    channel = connect().channel()
    channel.basic_qos(prefetch_count=prefetch)
    held = []
    for method, _, _ in channel.consume(queue, inactivity_timeout=0.1):
        if method:
            held.append(method.delivery_tag)
        while len(held) > random.randrange(max(prefetch // 2, 1)):
            tag = held.pop(0)
            if random.random() < refused:
                channel.basic_nack(tag, requeue=False)
            else:
                channel.basic_ack(tag)
            time.sleep(seconds)


threads = [
    threading.Thread(target=sell, daemon=True),
    threading.Thread(target=work, args=("mails", 20, 0.005, 0.03), daemon=True),
    threading.Thread(target=work, args=("search.index", 5, 0.001), daemon=True),
    threading.Thread(target=work, args=("shipping", 10, 0.02), daemon=True),
    *[threading.Thread(target=work, args=("billing", 5, 0.02), daemon=True) for _ in range(2)],
]
for thread in threads:
    thread.start()
while all(thread.is_alive() for thread in threads):
    time.sleep(0.2)
sys.exit("a program of the shop has ended")
