"""A proxy between nodes that can be cut, and which node a connection to it is of."""

import os
import pathlib
import socket
import threading


def owner(nodes, port, to):
    """The node whose process has a connection from this port to that one: what comes to a proxy does not say whose it is."""
    inode = None
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if [int(end.split(":")[1], 16) for end in fields[1:3]] == [port, to]:
            inode = f"socket:[{fields[9]}]"
    return next((node.name for node in nodes if node.is_running() and inode in handles(node.process.pid)), None)


def handles(pid):
    """What a process has open; whatever it closes meanwhile, or it ends, does not matter."""
    folder, found = pathlib.Path(f"/proc/{pid}/fd"), set()
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        try:
            found.add(os.readlink(folder / name))
        except OSError:
            pass
    return found


class Proxy:
    """Passes on what other nodes say to one, until it is cut: for all of them, or for some."""

    def __init__(self, target, whose):
        """`whose` tells the node that connects from a port."""
        self.target, self.whose = target, whose
        self.is_cut = False
        self.cut_for = set()
        # Takes every piece that goes by.
        self.tap = None
        # Each with the node that it is of.
        self.open = {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                incoming, _ = self.listener.accept()
            except OSError:
                return
            # To see whose it is takes a while where there are many connections. The next one does not wait for that: a node gives
            # up a connection that is not served within seconds, and comes again.
            threading.Thread(target=self.pass_on, args=(incoming,), daemon=True).start()

    def pass_on(self, incoming):
        """Connects to the node for a connection that has come, unless that is cut off."""
        try:
            node = self.whose(incoming.getpeername()[1], self.port)
            if self.is_cut_for(node):
                incoming.close()
                return
            outgoing = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            incoming.close()
            return
        outgoing.settimeout(None)
        with self.lock:
            # What is cut meanwhile is either found among the open ones or seen here.
            if self.is_cut_for(node):
                incoming.close()
                outgoing.close()
                return
            self.open |= {incoming: node, outgoing: node}
        ended = []
        for source, sink in ((incoming, outgoing), (outgoing, incoming)):
            threading.Thread(target=self.carry, args=(source, sink, ended), daemon=True).start()

    def carry(self, source, sink, ended):
        """One way. Closing a socket in which another thread waits would not end it for its other end."""
        how = socket.SHUT_WR
        try:
            while data := source.recv(65536):
                if self.tap:
                    self.tap(data)
                sink.sendall(data)
        except OSError:
            how = socket.SHUT_RDWR
        for one in (sink, source) if how == socket.SHUT_RDWR else (sink,):
            try:
                one.shutdown(how)
            except OSError:
                pass
        with self.lock:
            ended.append(source)
            if len(ended) == 2:
                for one in ended:
                    self.open.pop(one, None)
                    one.close()

    def is_cut_for(self, node):
        return self.is_cut or node in self.cut_for

    def cut(self, node=None):
        """For all nodes, or for this one."""
        if node is None:
            self.is_cut = True
        else:
            self.cut_for.add(node)
        with self.lock:
            open_now = [one for one, of in self.open.items() if node in (None, of)]
        for one in open_now:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mend(self):
        self.is_cut = False
        self.cut_for.clear()

    def close(self):
        self.listener.close()
        self.cut()
