"""A disk whose power can be cut: a file system (FUSE) that notes each change, and what is left of it after a cut.

    disk.py MOUNT FOLDER LOG DELAY

shows FOLDER at MOUNT, and writes into LOG what programs change there: one JSON array a line, in their order. fsync(2) takes
DELAY seconds, as on a memory card, so that whoever does not wait for it is found out.

Only what was synced is kept for certain (fsync(2), close(2), rename(2)):

- What was written into a file is kept once the file was synced. Before, of each write all, nothing, its beginning or any
  of its sectors may be kept; a file may have its new length, and zeros in it.
- A name in a folder is kept once that folder was synced: a new file or folder, a removal, and a file's new name. Before,
  each may be kept or lost, whatever became of those before it. A file that was synced, and whose name was not, is lost.
  Renaming is one change: a file is never without both names.
- An owner and a mode that were set are kept once the file or folder was synced.

Journaling file systems keep more than this; none of them promises it. The kernels of this project's machines have neither
dm-flakey nor dm-log-writes, and those would show what one file system does with a cut, not what any may do. A library that is
loaded before a program (LD_PRELOAD) would not see what other libraries write.
"""

import errno
import json
import os
import random
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512


# --- What was left ---


@dataclass
class Meta:
    mode: int
    owner: tuple[int, int]


@dataclass(eq=False)
class File:
    content: bytearray
    meta: Meta
    durable: bytes = b""
    durable_meta: Meta | None = None
    # Since it was last synced: where and what was written, or the length that it was cut to.
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)

    def write(self, offset: int, data: bytes):
        write_at(self.content, offset, data)
        self.pending.append((offset, data))

    def truncate(self, length: int):
        truncate(self.content, length)
        self.pending.append(length)

    def sync(self):
        self.durable, self.pending = bytes(self.content), []
        self.durable_meta = Meta(self.meta.mode, self.meta.owner)

    def left(self, luck: "Luck") -> bytes:
        content = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, int):
                if luck.keeps_data():
                    truncate(content, change)
            else:
                luck.tear(content, *change)
        return bytes(content)


@dataclass(eq=False)
class Folder:
    meta: Meta
    names: dict[str, "Node"] = field(default_factory=dict)
    durable: dict[str, "Node"] = field(default_factory=dict)
    durable_meta: Meta | None = None


@dataclass(eq=False)
class Link:
    target: str
    meta: Meta


Node = File | Folder | Link


@dataclass(eq=False)
class Change:
    """Of names: a node gets a name in a folder, or loses one, or both."""

    node: Node
    new: tuple[Folder, str] | None = None
    old: tuple[Folder, str] | None = None

    @property
    def folder(self) -> Folder:
        """Whoever syncs it has the change on the medium."""
        return (self.new or self.old)[0]

    def apply(self, names_of):
        if self.old and names_of(self.old[0]).get(self.old[1]) is self.node:
            del names_of(self.old[0])[self.old[1]]
        if self.new:
            names_of(self.new[0])[self.new[1]] = self.node


class Luck:
    """What a cut keeps of what was not synced: one of several kinds of file systems, by a random source."""

    KINDS = {  # how often a change of names is kept, and a write
        "nothing": (0, 0),
        "all": (1, 1),
        "names": (1, 0),
        "data": (0, 1),
        "some": (0.5, 0.5),
        "most": (0.85, 0.85),
    }

    def __init__(self, source: random.Random, kind: str | None = None):
        self._random = source
        self.kind = kind or source.choice(list(self.KINDS))
        self._names, self._data = self.KINDS[self.kind]

    def keeps_name(self) -> bool:
        return self._random.random() < self._names

    def keeps_data(self) -> bool:
        return self._random.random() < self._data

    def tear(self, content: bytearray, offset: int, data: bytes):
        if self.keeps_data():
            how = "all" if self.kind == "all" else self._random.choice(["all", "beginning", "sectors"])
        else:
            how = "nothing" if self.kind == "nothing" else self._random.choice(["nothing", "length"])
        match how:
            case "all":
                write_at(content, offset, data)
            case "beginning":
                write_at(content, offset, data[: self._random.randrange(len(data) + 1)])
            case "length":
                content.extend(bytes(max(0, offset + len(data) - len(content))))
            case "sectors":
                content.extend(bytes(max(0, offset + len(data) - len(content))))
                place = offset
                while place < offset + len(data):
                    end = min(offset + len(data), (place // SECTOR + 1) * SECTOR)
                    if self._random.random() < 0.5:
                        content[place:end] = data[place - offset : end - offset]
                    place = end


def write_at(content: bytearray, offset: int, data: bytes):
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def truncate(content: bytearray, length: int):
    del content[length:]
    content.extend(bytes(length - len(content)))


class Tree:
    """A folder as its programs see it, and what of it is on the medium."""

    def __init__(self, folder: Path):
        self.root = self._read(folder)
        self._pending: list[Change] = []
        self._open: dict[int, Node] = {}

    @classmethod
    def _read(cls, path: Path) -> Node:
        status = path.lstat()
        meta = Meta(stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))
        if path.is_symlink():
            return Link(os.readlink(path), meta)
        if path.is_dir():
            names = {each.name: cls._read(each) for each in path.iterdir()}
            return Folder(meta, names, dict(names))
        content = path.read_bytes()
        return File(bytearray(content), meta, content)

    def _find(self, path: str) -> Node:
        node = self.root
        for name in path.split("/"):
            if name:
                node = node.names[name]
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        return self._find(parent), name

    def _change(self, **places):
        change = Change(**places)
        change.apply(lambda folder: folder.names)
        self._pending.append(change)

    def apply(self, name: str, *arguments):
        getattr(self, f"_do_{name}")(*arguments)

    def _do_create(self, path, mode, owner, handle):
        node = File(bytearray(), Meta(mode, tuple(owner)))
        self._change(node=node, new=self._place(path))
        self._open[handle] = node

    def _do_open(self, path, handle):
        self._open[handle] = self._find(path)

    def _do_mkdir(self, path, mode, owner):
        self._change(node=Folder(Meta(mode, tuple(owner))), new=self._place(path))

    def _do_symlink(self, path, target, owner):
        self._change(node=Link(target, Meta(0o777, tuple(owner))), new=self._place(path))

    def _do_link(self, old, new):
        self._change(node=self._find(old), new=self._place(new))

    def _do_remove(self, path):
        self._change(node=self._find(path), old=self._place(path))

    def _do_rename(self, old, new):
        self._change(node=self._find(old), old=self._place(old), new=self._place(new))

    def _do_write(self, handle, offset, data):
        self._open[handle].write(offset, data.encode("latin-1"))

    def _do_truncate(self, path, handle, length):
        (self._find(path) if handle is None else self._open[handle]).truncate(length)

    def _do_chmod(self, path, mode):
        self._find(path).meta.mode = mode

    def _do_chown(self, path, owner):
        self._find(path).meta.owner = tuple(owner)

    def _do_sync(self, handle):
        self._open[handle].sync()

    def _do_sync_folder(self, path):
        folder = self._find(path)
        folder.durable_meta = Meta(folder.meta.mode, folder.meta.owner)
        synced = [change for change in self._pending if change.folder is folder]
        for change in synced:
            change.apply(lambda folder: folder.durable)
        # A file that has moved on has nothing left where it was.
        left = [(change.node, change.old) for change in synced]
        self._pending = [
            change for change in self._pending if change not in synced and (change.node, change.new) not in left
        ]

    def leave(self, luck: Luck, place: Path):
        """Writes what is left when the power is cut now."""
        names: dict[int, dict[str, Node]] = {}

        def names_of(folder: Folder) -> dict[str, Node]:
            return names.setdefault(id(folder), dict(folder.durable))

        for change in self._pending:
            if luck.keeps_name():
                change.apply(names_of)

        def write(node: Node, path: Path):
            meta = node.meta
            if not isinstance(node, Link) and node.durable_meta and not luck.keeps_data():
                meta = node.durable_meta
            match node:
                case Link():
                    path.symlink_to(node.target)
                    return
                case Folder():
                    path.mkdir(exist_ok=True)
                    for name, inner in names_of(node).items():
                        write(inner, path / name)
                case File():
                    path.write_bytes(node.left(luck))
            os.chown(path, *meta.owner)
            path.chmod(meta.mode)

        write(self.root, place)


# --- The disk ---


class Disk:
    """A folder behind a file system of its own. `path` is where programs use it."""

    DELAY_S = 0.01

    def __init__(self, folder: Path, mount: Path, delay_s: float = DELAY_S):
        folder, mount = folder.absolute(), mount.absolute()
        self.folder, self.path = folder, mount
        self.before = Tree(folder)
        self._log = mount.with_name(f"{mount.name}.log")
        self._log.unlink(missing_ok=True)
        mount.mkdir(exist_ok=True)
        command = [sys.executable, __file__, mount, folder, self._log, str(delay_s)]
        said = mount.with_name(f"{mount.name}.said")
        with open(said, "wb") as stream:
            self._process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stderr=stream)
        while not os.path.ismount(mount):
            assert self._process.poll() is None, said.read_text()
            time.sleep(0.002)

    @property
    def now(self) -> int:
        """How many bytes of the log there are: whatever ended before this moment is in there."""
        return self._log.stat().st_size if self._log.exists() else 0

    def changes(self) -> list[tuple[int, list]]:
        """Each change, and the size of the log with it."""
        changes, size = [], 0
        for line in self._log.read_bytes().splitlines(keepends=True):
            size += len(line)
            changes.append((size, json.loads(line)))
        return changes

    def close(self):
        if self._process.poll() is None:
            subprocess.run(["umount", "--lazy", self.path], capture_output=True)
            self._process.kill()
            self._process.wait()


def can_mount() -> bool:
    try:
        import mfusepy  # noqa: F401
    except (ImportError, OSError, AttributeError):
        return False
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


def serve(mount: str, folder: str, log: str, delay: float):
    import mfusepy

    class Recording(mfusepy.Operations):
        """Does what it is asked in the folder, and notes changes. One lock keeps the log in the order of what was done."""

        use_ns = True

        def __init__(self):
            self._lock = threading.Lock()
            self._file = open(log, "ab", buffering=0)

        def _real(self, path: str) -> str:
            return folder + path

        def _note(self, *change):
            self._file.write(json.dumps(change).encode() + b"\n")

        def _owner(self) -> tuple[int, int]:
            return mfusepy.fuse_get_context()[:2]

        def _new(self, path: str) -> tuple[int, int]:
            """Whose a new file is: not this program's."""
            owner = self._owner()
            os.lchown(self._real(path), *owner)
            return owner

        def getattr(self, path, fh=None):
            try:
                status = os.lstat(self._real(path)) if fh is None else os.fstat(fh)
            except OSError as error:
                raise mfusepy.FuseOSError(error.errno) from None
            names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
            times = {f"st_{each}": getattr(status, f"st_{each}_ns") for each in ("atime", "mtime", "ctime")}
            return {name: getattr(status, name) for name in names} | times

        def readdir(self, path, fh):
            return [".", "..", *os.listdir(self._real(path))]

        def readlink(self, path):
            return os.readlink(self._real(path))

        def statfs(self, path):
            status = os.statvfs(self._real(path))
            return {name: getattr(status, name) for name in dir(status) if name.startswith("f_")}

        def access(self, path, amode):
            return 0

        def open(self, path, flags):
            with self._lock:
                handle = os.open(self._real(path), flags & ~(os.O_APPEND | os.O_EXCL | os.O_CREAT | os.O_NONBLOCK))
                self._note("open", path, handle)
                if flags & os.O_TRUNC:
                    self._note("truncate", None, handle, 0)
            return handle

        def create(self, path, mode, fi=None):
            with self._lock:
                is_new = not os.path.lexists(self._real(path))
                handle = os.open(self._real(path), os.O_RDWR | os.O_CREAT, mode)
                if is_new:
                    self._note("create", path, stat.S_IMODE(mode), self._new(path), handle)
                else:
                    self._note("open", path, handle)
            return handle

        def read(self, path, size, offset, fh):
            return os.pread(fh, size, offset)

        def write(self, path, data, offset, fh):
            with self._lock:
                done = os.pwrite(fh, data, offset)
                self._note("write", fh, offset, data[:done].decode("latin-1"))
            return done

        def truncate(self, path, length, fh=None):
            with self._lock:
                os.truncate(self._real(path) if fh is None else fh, length)
                self._note("truncate", path, fh, length)
            return 0

        def release(self, path, fh):
            os.close(fh)
            return 0

        def fsync(self, path, datasync, fh):
            time.sleep(delay)
            with self._lock:
                self._note("sync", fh)
            return 0

        def fsyncdir(self, path, datasync, fh):
            time.sleep(delay)
            with self._lock:
                self._note("sync_folder", path)
            return 0

        def mkdir(self, path, mode):
            with self._lock:
                os.mkdir(self._real(path), mode)
                self._note("mkdir", path, stat.S_IMODE(mode), self._new(path))
            return 0

        def symlink(self, target, source):
            with self._lock:
                os.symlink(source, self._real(target))
                self._note("symlink", target, source, self._new(target))
            return 0

        def link(self, target, source):
            with self._lock:
                os.link(self._real(source), self._real(target))
                self._note("link", source, target)
            return 0

        def unlink(self, path):
            with self._lock:
                os.unlink(self._real(path))
                self._note("remove", path)
            return 0

        def rmdir(self, path):
            with self._lock:
                os.rmdir(self._real(path))
                self._note("remove", path)
            return 0

        def rename(self, old, new):
            with self._lock:
                os.rename(self._real(old), self._real(new))
                self._note("rename", old, new)
            return 0

        def chmod(self, path, mode):
            with self._lock:
                os.chmod(self._real(path), stat.S_IMODE(mode))
                self._note("chmod", path, stat.S_IMODE(mode))
            return 0

        def chown(self, path, uid, gid):
            with self._lock:
                os.lchown(self._real(path), uid, gid)
                status = os.lstat(self._real(path))
                self._note("chown", path, (status.st_uid, status.st_gid))
            return 0

        def utimens(self, path, times=None):
            os.utime(self._real(path), ns=times, follow_symlinks=False)
            return 0

        def mknod(self, path, mode, dev):
            raise mfusepy.FuseOSError(errno.EPERM)

    os.umask(0)
    options = {"foreground": True, "hard_remove": True, "attr_timeout": 0, "entry_timeout": 0, "negative_timeout": 0}
    mfusepy.FUSE(Recording(), mount, fsname="disk", allow_other=True, **options)


if __name__ == "__main__":
    serve(*sys.argv[1:4], float(sys.argv[4]))
