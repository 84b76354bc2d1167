"""Child processes made by `fork`.

A child has none of its parent's I/O threads. It gets its own when it first uses a channel or server: an inherited
channel connects again, and calls that were in flight at the fork stay with the parent. A server of the parent does not
serve in the child.

On Linux, the child closes its copies of the parent's sockets. Otherwise a connection that the parent closes would stay
open, and a port that the parent listens on would stay taken, as long as the child lives. On other systems the copies stay
open.
"""

import os
import stat
import threading
from typing import Iterator, Optional

from thalweg import _native


class _Fork(threading.local):
    """The fork of the current thread. Other threads may fork at the same time."""

    #: The sockets of the parent. A child cannot find them: it shares the epoll instance, which the parent changes.
    sockets: "list[int]" = []


_fork = _Fork()


def register() -> None:
    """Registers the handlers of this process. To be called once."""
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _before() -> None:
    marker = _native.before_fork()
    if marker is not None:
        _fork.sockets = _sockets_with(marker)


def _after_in_parent() -> None:
    _native.after_fork_in_parent()
    _fork.sockets = []


def _after_in_child() -> None:
    _native.after_fork_in_child()
    if _fork.sockets:
        _close(_fork.sockets)
        _fork.sockets = []


def _close(sockets: "list[int]") -> None:
    """Closes descriptors. Their numbers stay taken, by `/dev/null`: objects that own them may close them later."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for descriptor in sockets:
            os.dup2(null, descriptor, inheritable=False)
    finally:
        os.close(null)


def _sockets_with(marker: int) -> "list[int]":
    """Returns the sockets that are registered with the same epoll instance as `marker`."""
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    for descriptor in descriptors:
        registered = dict(_registered(descriptor) or ())
        if _is_socket(marker, registered.get(marker)):
            return [number for number, inode in registered.items() if _is_socket(number, inode)]
    return []


def _registered(descriptor: int) -> "Optional[Iterator[tuple[int, int]]]":
    """Returns the descriptors that are registered with an epoll instance, and their inodes. None for other files."""
    try:
        if os.readlink(f"/proc/self/fd/{descriptor}") != "anon_inode:[eventpoll]":
            return None
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as info:
            lines = info.read().splitlines()
    except OSError:
        return None
    # A line is `tfd: 8 events: 19 data: 8  pos:0 ino:61 sdev:7`, with spaces after some colons.
    fields = (line.replace(":", ": ").split() for line in lines if line.startswith("tfd:") and "ino:" in line)
    return ((int(words[1]), int(words[words.index("ino:") + 1], 16)) for words in fields)


def _is_socket(descriptor: int, inode: Optional[int]) -> bool:
    """Returns whether `descriptor` is a socket with this inode, and not another file that has got its number."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_ino == inode
