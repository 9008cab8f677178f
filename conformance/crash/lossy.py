"""A file system that loses what was not synced, over /dev/fuse, without a library.

    python lossy.py FOLDER

mounts it on FOLDER, empty, and serves until FOLDER is unmounted. Everything is in memory. Writing to `FOLDER/.power`

    off         makes every change and every sync fail from then on, as if the disk were gone
    on SEED     leaves what a loss of power leaves, and goes on with that
    lie         makes syncs do nothing: for the test of the test

What was written to a file counts only after an `fsync` of that file, and a name only after an `fsync` of its folder. Of the
rest, each sector of 512 bytes and each change of a name is there or not, as SEED says. Each write comes here at once:
the kernel keeps nothing back, as it is not asked to.
"""

import ctypes
import errno
import os
import random
import stat
import struct
import sys
import time

SECTOR = 512
WRITE_MAX = 1 << 20
CONTROL = ".power"
ROOT_INO, CONTROL_INO = 1, 2

(LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC) = (
    1, 2, 3, 4, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 20)  # fmt: skip
(FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, ACCESS, CREATE, INTERRUPT, DESTROY, BATCH_FORGET, FALLOCATE,
 RENAME2) = (25, 26, 27, 28, 29, 30, 34, 35, 36, 38, 42, 43, 45)  # fmt: skip

SETATTR_MODE, SETATTR_SIZE = 1, 8
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
PUNCH_HOLE = 2


class Refused(Exception):
    """The answer is this error number."""


class File:
    """What a running program sees, what is on the disk, and the changes that lie between."""

    def __init__(self, mode):
        self.mode, self.live, self.durable, self.pending = mode, bytearray(), bytearray(), []

    def change(self, offset, data):
        put(self.live, offset, data)
        self.pending.append((offset, data))

    def resize(self, size):
        resize(self.live, size)
        self.pending.append((size, None))

    def sync(self):
        for offset, data in self.pending:
            resize(self.durable, offset) if data is None else put(self.durable, offset, data)
        self.pending.clear()

    def lose(self, rng, kept):
        for offset, data in self.pending:
            if data is None:
                if rng.random() < kept:
                    resize(self.durable, offset)
                continue
            at = 0
            while at < len(data):
                end = min(len(data), at + SECTOR - (offset + at) % SECTOR)
                if rng.random() < kept:
                    put(self.durable, offset + at, data[at:end])
                at = end
        self.pending.clear()
        self.live = bytearray(self.durable)


class Folder:
    """The same for names; a change maps names to numbers of files, or to None, all of them or none."""

    def __init__(self, mode):
        self.mode, self.live, self.durable, self.pending = mode, {}, {}, []

    def change(self, names):
        apply(self.live, names)
        self.pending.append(names)

    def sync(self):
        self.durable = dict(self.live)
        self.pending.clear()

    def lose(self, rng, kept):
        in_order, count = rng.random() < 0.5, rng.randrange(len(self.pending) + 1)
        for index, names in enumerate(self.pending):
            if index < count if in_order else rng.random() < kept:
                apply(self.durable, names)
        self.pending.clear()
        self.live = dict(self.durable)


def put(image, offset, data):
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


def resize(image, size):
    if size < len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def apply(names, change):
    for name, ino in change.items():
        if ino is None:
            names.pop(name, None)
        else:
            names[name] = ino


class Disk:
    """Answers the kernel's requests, one after the other."""

    def __init__(self):
        self.nodes = {ROOT_INO: Folder(stat.S_IFDIR | 0o755), CONTROL_INO: File(stat.S_IFREG | 0o600)}
        self.next_ino = 3
        self.is_off = self.lies = False
        self.answers = {
            LOOKUP: self.lookup, GETATTR: self.getattr, SETATTR: self.setattr, MKDIR: self.mkdir, UNLINK: self.unlink,
            RMDIR: self.unlink, RENAME: self.rename, RENAME2: self.rename2, OPEN: self.open, OPENDIR: self.open,
            READ: self.read, WRITE: self.write, STATFS: self.statfs, FSYNC: self.fsync, FSYNCDIR: self.fsync,
            READDIR: self.readdir, CREATE: self.create, FALLOCATE: self.fallocate, INIT: self.init,
            RELEASE: self.nothing, RELEASEDIR: self.nothing, FLUSH: self.nothing, ACCESS: self.nothing,
        }  # fmt: skip

    def node(self, ino):
        if ino not in self.nodes:
            raise Refused(errno.ENOENT)
        return self.nodes[ino]

    def changing(self):
        if self.is_off:
            raise Refused(errno.EIO)

    # -- what is there

    def attributes(self, ino):
        node = self.node(ino)
        size = len(node.live)
        links = 2 if isinstance(node, Folder) else 1
        times = (0,) * 6
        return struct.pack("<6Q10I", ino, size, (size + 511) // 512, 0, 0, 0, *times[:3], node.mode, links, 0, 0, 0, 4096, 0)

    def entry(self, ino):
        return struct.pack("<4Q2I", ino, 0, 0, 0, 0, 0) + self.attributes(ino)

    def lookup(self, ino, body):
        name = body.rstrip(b"\0").decode()
        if ino == ROOT_INO and name == CONTROL:
            return self.entry(CONTROL_INO)
        child = self.node(ino).live.get(name)
        if child is None:
            raise Refused(errno.ENOENT)
        return self.entry(child)

    def getattr(self, ino, _body):
        return struct.pack("<Q2I", 0, 0, 0) + self.attributes(ino)

    def readdir(self, ino, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        out = bytearray()
        for index, (name, child) in enumerate(sorted(self.node(ino).live.items())):
            encoded = name.encode()
            kind = stat.S_IFMT(self.nodes[child].mode) >> 12
            item = struct.pack("<QQII", child, index + 1, len(encoded), kind) + encoded
            item += bytes(-len(item) % 8)
            if index >= offset:
                if len(out) + len(item) > size:
                    break
                out += item
        return bytes(out)

    def read(self, ino, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self.node(ino).live[offset : offset + size])

    def statfs(self, _ino, _body):
        return struct.pack("<5Q4I6I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0, *(0,) * 6)

    def open(self, _ino, _body):
        return struct.pack("<QII", 0, 0, 0)

    def nothing(self, _ino, _body):
        return b""

    def init(self, _ino, _body):
        return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, BIG_WRITES | MAX_PAGES, 16, 12, WRITE_MAX, 1,
                           WRITE_MAX // 4096, 0, *(0,) * 8)  # fmt: skip

    # -- what changes something

    def add(self, parent, name, node):
        self.changing()
        ino, self.next_ino = self.next_ino, self.next_ino + 1
        self.nodes[ino] = node
        self.node(parent).change({name: ino})
        return ino

    def mkdir(self, ino, body):
        (mode,) = struct.unpack_from("<I", body)
        return self.entry(self.add(ino, body[8:].rstrip(b"\0").decode(), Folder(stat.S_IFDIR | mode & 0o777)))

    def create(self, ino, body):
        _, mode = struct.unpack_from("<II", body)
        child = self.add(ino, body[16:].rstrip(b"\0").decode(), File(stat.S_IFREG | mode & 0o777))
        return self.entry(child) + self.open(child, b"")

    def unlink(self, ino, body):
        self.changing()
        name = body.rstrip(b"\0").decode()
        if name not in self.node(ino).live:
            raise Refused(errno.ENOENT)
        child = self.nodes[self.node(ino).live[name]]
        if isinstance(child, Folder) and child.live:
            raise Refused(errno.ENOTEMPTY)
        self.node(ino).change({name: None})
        return b""

    def rename(self, ino, body, skip=8):
        self.changing()
        (target,) = struct.unpack_from("<Q", body)
        old, new = (name.decode() for name in body[skip:].split(b"\0")[:2])
        child = self.node(ino).live.get(old)
        if child is None:
            raise Refused(errno.ENOENT)
        if target == ino:
            self.node(ino).change({old: None, new: child})
        else:
            self.node(target).change({new: child})
            self.node(ino).change({old: None})
        return b""

    def rename2(self, ino, body):
        return self.rename(ino, body, skip=16)

    def setattr(self, ino, body):
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        node = self.node(ino)
        if valid & SETATTR_SIZE and ino != CONTROL_INO:
            self.changing()
            node.resize(size)
        if valid & SETATTR_MODE:
            (mode,) = struct.unpack_from("<I", body, 68)
            node.mode = stat.S_IFMT(node.mode) | mode & 0o777
        return self.getattr(ino, b"")

    def write(self, ino, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        data = bytes(body[40 : 40 + size])
        if ino == CONTROL_INO:
            self.control(data.decode().split())
        else:
            self.changing()
            self.node(ino).change(offset, data)
        return struct.pack("<II", size, 0)

    def fallocate(self, ino, body):
        self.changing()
        _, offset, length, mode = struct.unpack_from("<QQQI", body)
        node = self.node(ino)
        if not mode & PUNCH_HOLE:
            raise Refused(errno.EOPNOTSUPP)
        length = min(length, len(node.live) - offset)
        if length > 0:
            node.change(offset, bytes(length))
        return b""

    def fsync(self, ino, _body):
        self.changing()
        if not self.lies:
            self.node(ino).sync()
        return b""

    # -- the power

    def control(self, words):
        if words[0] == "off":
            self.is_off = True
        elif words[0] == "lie":
            self.lies = True
        elif words[0] == "on":
            rng = random.Random(words[1])
            kept = rng.choice([0, 0.5, 0.9, 1])
            for ino, node in self.nodes.items():
                if ino != CONTROL_INO:
                    node.lose(rng, kept)
            self.forget_unreachable()
            self.is_off = False

    def forget_unreachable(self):
        reached, todo = {CONTROL_INO}, [ROOT_INO]
        while todo:
            ino = todo.pop()
            if ino not in reached:
                reached.add(ino)
                if isinstance(self.nodes[ino], Folder):
                    todo += self.nodes[ino].live.values()
        self.nodes = {ino: self.nodes[ino] for ino in reached}

    # -- the kernel

    def serve(self, fuse):
        while True:
            try:
                request = os.read(fuse, WRITE_MAX + 8192)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                raise
            _, opcode, unique, ino = struct.unpack_from("<IIQQ", request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            code, answer = 0, b""
            try:
                if opcode != DESTROY:
                    if opcode not in self.answers:
                        raise Refused(errno.ENOSYS)
                    answer = self.answers[opcode](ino, request[40:])
            except Refused as refused:
                code, answer = -refused.args[0], b""
            try:
                os.write(fuse, struct.pack("<IiQ", 16 + len(answer), code, unique) + answer)
            except OSError as error:
                # The broker was killed meanwhile.
                if error.errno not in (errno.ENOENT, errno.ENODEV):
                    raise


def mount(folder):
    """The descriptor on which the kernel asks."""
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40755,user_id={os.getuid()},group_id={os.getgid()},allow_other,max_read={WRITE_MAX}"
    libc = ctypes.CDLL(None, use_errno=True)
    flags = 2 | 4  # MS_NOSUID, MS_NODEV
    if libc.mount(b"courser-lossy", os.fsencode(folder), b"fuse", flags, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), folder)
    return fuse


def unmount(folder):
    """At once, also while a process still has something open there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.umount2(os.fsencode(folder), 2)


class Mounted:
    """The file system in a process of its own."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        unmount(self.folder)
        fuse = mount(self.folder)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                Disk().serve(fuse)
            finally:
                os._exit(0)
        os.close(fuse)

    def tell(self, words):
        with open(os.path.join(self.folder, CONTROL), "wb", buffering=0) as control:
            control.write(words.encode())

    def close(self):
        unmount(self.folder)
        # No process has it open any more, so that ends it.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.01)


if __name__ == "__main__":
    Disk().serve(mount(sys.argv[1]))
