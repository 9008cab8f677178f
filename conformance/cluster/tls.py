"""Nodes that know each other by certificates: they form a cluster, what they say can't be read on the way, and others are kept out."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import pika
from nodes import PATIENCE_S, Cluster, Node

SECRET_BODY = b"no one on the way may read this"


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def authority(folder, name):
    """A certificate to sign others with; they are for 127.0.0.1."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", key, "-out", certificate)  # fmt: skip
    return key, certificate


def certificate(folder, name, signed_by):
    key, request, made = (folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request)  # fmt: skip
    names = folder / f"{name}.ext"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    signing_key, signing = signed_by
    openssl("x509", "-req", "-in", request, "-CA", signing, "-CAkey", signing_key, "-CAcreateserial", "-days", "2",
            "-extfile", names, "-out", made)  # fmt: skip
    return key, made


def settings(pair, trusted):
    key, made = pair
    return {
        "COURSER_CLUSTER_TLS_CERTIFICATE": str(made),
        "COURSER_CLUSTER_TLS_KEY": str(key),
        "COURSER_CLUSTER_TLS_CA": str(trusted),
    }


def publish_and_take(nodes):
    """Through the first, and from the last."""
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", nodes[0].amqp)) as connection:
        channel = connection.channel()
        channel.queue_declare("tls", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "tls", SECRET_BODY, pika.BasicProperties(delivery_mode=2))
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", nodes[-1].amqp)) as connection:
        _, _, body = connection.channel().basic_get("tls", auto_ack=True)
    assert body == SECRET_BODY, f"{body!r} came instead of {SECRET_BODY!r}"


def wait_for_log(node, words):
    until = time.monotonic() + PATIENCE_S
    while not any(word in node.log() for word in words):
        assert time.monotonic() < until, f"node {node.name} says none of {words}: {node.log()[-500:]}"
        time.sleep(0.1)


def play(binary, folder):
    ours, theirs = authority(folder, "ours"), authority(folder, "theirs")
    cluster = Cluster(binary, folder, 3)
    strangers = []
    seen = bytearray()
    try:
        for node in cluster.nodes:
            node.settings = settings(certificate(folder, f"node-{node.name}", ours), ours[1])
            node.proxy.tap = seen.extend
        cluster.start()
        cluster.leader()
        publish_and_take(cluster.nodes)
        assert seen, "nothing went through the proxies"
        assert SECRET_BODY not in seen, "a message can be read between nodes"
        print("   three nodes with certificates: a cluster, whose words can't be read between them", flush=True)
        found = {"another authority's": settings(certificate(folder, "stranger", theirs), ours[1]), "no": {}}
        for (what, extra), name in zip(found.items(), "xy"):
            stranger = Node(binary, folder, name, lambda port, to: None)
            stranger.settings = extra
            strangers.append(stranger)
            stranger.start(cluster.join)
            wait_for_log(stranger, ["waiting to form the cluster"])
            time.sleep(2)
            members = [one["name"] for one in cluster.leader().status()["members"]]
            assert sorted(members) == [node.name for node in cluster.nodes], f"the members are now {members}"
            assert "this node is not in it" not in stranger.log(), f"a node with {what} certificate was told of the cluster"
            wait_for_log(next(node for node in cluster.nodes), ["a node was not let in"])
            print(f"   a node with {what} certificate: not let in", flush=True)
        publish_and_take(cluster.nodes[::-1])
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.proxy.close()
        cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the broker")
    options = parser.parse_args()
    print("== cluster: nodes with certificates", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            play(options.binary, pathlib.Path(folder))
        except (AssertionError, pika.exceptions.AMQPError, subprocess.CalledProcessError) as error:
            print(f"   {error!r}", flush=True)
            print("0 passed, 1 failed")
            sys.exit(1)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
