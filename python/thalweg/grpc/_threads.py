"""The thread that runs callbacks of the blocking interface."""

import atexit
import logging
import os
import threading
from typing import Optional

from thalweg import _native

_LOGGER = logging.getLogger(__name__)

#: Time in seconds that the exit of the interpreter waits for a running callback.
_EXIT_TIMEOUT = 1.0

_lock = threading.Lock()
_queue: "Optional[_native.CompletionQueue]" = None
_thread: Optional[threading.Thread] = None


def start_queue(name: str) -> "tuple[_native.CompletionQueue, threading.Thread]":
    """Returns a new completion queue, and the daemon thread that runs its completions until it is closed."""
    read_end, write_end = wake_descriptors(blocks=True)
    queue = _native.CompletionQueue(None, read_end, write_end)
    thread = threading.Thread(target=queue.run_until_closed, name=name, daemon=True)
    thread.start()
    return queue, thread


def callbacks() -> "_native.CompletionQueue":
    """Returns the queue of the thread that runs the callbacks of the process, which the first call starts."""
    global _queue, _thread
    queue = _queue
    if queue is not None:
        return queue
    with _lock:
        if _queue is None:
            _queue, _thread = start_queue("thalweg-callbacks")
        return _queue


def log_callback_error(error: BaseException) -> None:
    """Logs the exception of a callback."""
    _LOGGER.error("exception in a callback of a gRPC call or channel", exc_info=error)


def wake_descriptors(blocks: bool) -> "tuple[int, int]":
    """Returns the descriptors of a completion queue, to read and to write, which belong to the caller."""
    if hasattr(os, "eventfd"):
        descriptor = os.eventfd(0, os.EFD_CLOEXEC | (0 if blocks else os.EFD_NONBLOCK))
        return descriptor, os.dup(descriptor)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, blocks)
    os.set_blocking(write_end, blocks)
    return read_end, write_end


def _end() -> None:
    if _queue is not None and _thread is not None:
        _queue.close()
        _thread.join(_EXIT_TIMEOUT)


def _after_fork_in_child() -> None:
    """Leaves the queue to the parent process, whose thread the child does not have."""
    global _lock, _queue, _thread
    _lock = threading.Lock()
    _queue = _thread = None


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork_in_child)
