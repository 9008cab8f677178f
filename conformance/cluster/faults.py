"""What is done to the nodes of a cluster while clients work."""

import random
import shutil
import time

import pika
from nodes import PATIENCE_S
from pika.adapters.utils.connection_workflow import AMQPConnectorException


def kill_leader(cluster, seconds):
    """The node that leads is gone at once, and comes back."""
    node = cluster.any_leader()
    node.kill()
    time.sleep(seconds)
    cluster.start_node(node)


def kill_follower(cluster, seconds):
    node = random.choice(cluster.followers())
    node.kill()
    time.sleep(seconds)
    cluster.start_node(node)


def kill_all(cluster, seconds):
    """No power for all of them at once, as far as processes know."""
    for node in cluster.nodes:
        node.kill()
    time.sleep(min(seconds, 1))
    for node in cluster.nodes:
        cluster.start_node(node)


def kill_majority(cluster, seconds):
    """Nothing can be confirmed until they are back."""
    nodes = random.sample(cluster.nodes, len(cluster.nodes) // 2 + 1)
    for node in nodes:
        node.kill()
    time.sleep(seconds)
    for node in nodes:
        cluster.start_node(node)


def pause_leader(cluster, seconds):
    """It neither answers nor goes away, and believes that it leads when it goes on."""
    node = cluster.any_leader()
    node.pause()
    time.sleep(seconds)
    node.resume()


def pause_follower(cluster, seconds):
    node = random.choice(cluster.followers())
    node.pause()
    time.sleep(seconds)
    node.resume()


def cut_leader(cluster, seconds):
    """No node reaches it; it reaches the others."""
    node = cluster.any_leader()
    node.proxy.cut()
    time.sleep(seconds)
    node.proxy.mend()


def cut_all(cluster, seconds):
    """No node reaches another one."""
    for node in cluster.nodes:
        node.proxy.cut()
    time.sleep(seconds)
    for node in cluster.nodes:
        node.proxy.mend()


def cut_link(cluster, seconds):
    """Two nodes do not reach each other, the third one reaches both. Every other time, one of the two leads."""
    leader = cluster.leader()
    others = [node for node in cluster.nodes if node is not leader]
    one, other = random.choice([others[:2], [leader, random.choice(others)]])
    one.proxy.cut(other.name)
    other.proxy.cut(one.name)
    time.sleep(seconds)
    one.proxy.mend()
    other.proxy.mend()


def fill_disk(cluster, seconds):
    """A node's disk has no space left; every other time it is that of the node that leads."""
    node = next((node for node in cluster.nodes if node.disk), None)
    if node is None:
        print("   (left out: nothing may be mounted here, so that no disk can be filled)", flush=True)
        return
    if random.random() < 0.5 and cluster.leader() is not node:
        cluster.order("PUT", "/api/cluster/leader", {"node": node.name})
        time.sleep(0.5)
    node.disk.fill()
    write_much(cluster)
    time.sleep(seconds)
    node.disk.free()
    if not node.is_running():
        cluster.start_node(node)
    cluster.wait_for_voter(node)


def write_much(cluster):
    """More than what a node has put by for its log, unless it is held back."""
    try:
        parameters = pika.ConnectionParameters("127.0.0.1", cluster.leader().amqp, blocked_connection_timeout=2, socket_timeout=5)
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.queue_declare("much", durable=True)
            for _ in range(400):
                channel.basic_publish("", "much", bytes(1 << 16), pika.BasicProperties(delivery_mode=2))
            channel.queue_purge("much")
    except (pika.exceptions.AMQPError, AMQPConnectorException, OSError) as error:
        print(f"   (while the disk is full: {error!r})", flush=True)


def flip_bytes(cluster, seconds):
    """What a node has on its disk is damaged while it is off. It must not count on it: it takes a copy from another one, or does
    not start and says why, and is replaced."""
    node = random.choice(cluster.followers())
    node.kill()
    folder = random.choice(sorted(node.data.glob("group*")))
    logs = sorted(folder.glob("*.log"))
    flip(random.choice(logs[-3:]))
    time.sleep(min(seconds, 1))
    cluster.start_node(node)
    if not cluster.wait_for_voter(node):
        assert "damage" in node.log()[-2000:], f"node {node.name} ended without a word of the damage: {node.log()[-500:]}"
        print(f"   (node {node.name} refuses to start with the damage, and is replaced)", flush=True)
        replace(cluster, node)


def flip(path):
    """Eight bytes, where something is written."""
    content = bytearray(path.read_bytes())
    used = len(content.rstrip(b"\0"))
    at = random.randrange(max(used - 8, 1))
    content[at : at + 8] = bytes(octet ^ 0xFF for octet in content[at : at + 8])
    path.write_bytes(content)


def lose_folder(cluster, seconds):
    """A node comes back with an empty disk, as a new one: the old one is removed, and it is added."""
    node = random.choice(cluster.followers())
    node.kill()
    time.sleep(min(seconds, 1))
    replace(cluster, node)


def replace(cluster, node):
    """As the documentation says."""
    shutil.rmtree(node.data)
    cluster.order("DELETE", f"/api/cluster/nodes/{node.name}")
    add(cluster, node)


def add(cluster, node):
    """Starts one that has nothing, and has it vote."""
    cluster.start_node(node)
    cluster.order("POST", "/api/cluster/nodes", {"address": node.address})
    assert cluster.wait_for_voter(node), f"node {node.name}, that was added, has ended: {node.log()[-500:]}"


def exchange_member(cluster, _seconds):
    """A node is added and another one removed, which may be the one that led; then the same the other way round."""
    new = cluster.one_more()
    add(cluster, new)
    old = random.choice(cluster.nodes[:-1])
    remove(cluster, old)
    shutil.rmtree(old.data)
    add(cluster, old)
    remove(cluster, new)
    cluster.forget(new)


def remove(cluster, node):
    """It ends by itself when it hears of it. One that leads has another one lead first."""
    until = time.monotonic() + PATIENCE_S
    while cluster.leader() is node and time.monotonic() < until:
        cluster.order("PUT", "/api/cluster/leader", {})
        time.sleep(1)
    cluster.order("DELETE", f"/api/cluster/nodes/{node.name}")
    while node.is_running():
        assert time.monotonic() < until, f"node {node.name} was removed and still runs: {node.log()[-500:]}"
        time.sleep(0.1)


def restart_one_by_one(cluster, _seconds):
    """As for a new version."""
    for node in cluster.nodes:
        node.drain()
        node.end()
        cluster.start_node(node)
        cluster.wait_for_voter(node)


def move_vhosts(cluster, seconds):
    """Each vhost but that of home goes to another group while clients work in it."""
    if cluster.groups == 1:
        time.sleep(seconds)
        return
    for vhost in cluster.vhosts()[1:]:
        group = random.choice([number for number in range(cluster.groups) if number != cluster.group_of(vhost)])
        cluster.move(vhost, group)


def kill_leader_in_move(cluster, seconds):
    """A node that has to do with a move is lost in the middle of it. The vhost is in one of the two groups then, whole."""
    if cluster.groups > 1:
        vhost = random.choice(cluster.vhosts()[1:])
        group = random.choice([number for number in range(cluster.groups) if number != cluster.group_of(vhost)])
        cluster.begin_move(vhost, group)
        time.sleep(random.random() / 2)
    kill_leader(cluster, seconds)


ALL = [
    kill_leader,
    kill_follower,
    kill_all,
    kill_majority,
    pause_leader,
    pause_follower,
    cut_leader,
    cut_all,
    cut_link,
    fill_disk,
    flip_bytes,
    lose_folder,
    restart_one_by_one,
    exchange_member,
]
# Where there are several groups.
OF_GROUPS = [move_vhosts, kill_leader_in_move]
