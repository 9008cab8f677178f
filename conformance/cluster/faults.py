"""What is done to the nodes of a cluster while clients work."""

import random
import time


def kill_leader(cluster, seconds):
    """The node that leads is gone at once, and comes back."""
    node = cluster.leader()
    node.kill()
    time.sleep(seconds)
    cluster.start_node(node)


def kill_follower(cluster, seconds):
    node = random.choice([node for node in cluster.nodes if node is not cluster.leader()])
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
    node = cluster.leader()
    node.pause()
    time.sleep(seconds)
    node.resume()


def pause_follower(cluster, seconds):
    node = random.choice([node for node in cluster.nodes if node is not cluster.leader()])
    node.pause()
    time.sleep(seconds)
    node.resume()


def cut_leader(cluster, seconds):
    """Nobody reaches it; it reaches the others."""
    node = cluster.leader()
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


def restart_one_by_one(cluster, _seconds):
    """As for a new version."""
    for node in cluster.nodes:
        node.end()
        cluster.start_node(node)
        cluster.leader()


ALL = [
    kill_leader,
    kill_follower,
    kill_all,
    kill_majority,
    pause_leader,
    pause_follower,
    cut_leader,
    cut_all,
    restart_one_by_one,
]
