"""The threads of the blocking interface that run callbacks."""

import atexit
import logging
import os
import threading
from typing import Optional

from thalweg import _native

_LOGGER = logging.getLogger(__name__)

#: Time in seconds that the exit of the interpreter waits for a running callback.
_EXIT_TIMEOUT = 1.0


def start_queue(name: str) -> "tuple[_native.CompletionQueue, threading.Thread]":
    """Returns a new completion queue, and the daemon thread that runs its completions until it is closed."""
    read_end, write_end = wake_descriptors(blocks=True)
    queue = _native.CompletionQueue(None, read_end, write_end)
    thread = threading.Thread(target=queue.run_until_closed, name=name, daemon=True)
    thread.start()
    return queue, thread


class _Runner:
    """A thread of the process that runs completions. Its first use starts it, in a child process once more."""

    def __init__(self, name: str):
        self._name = name
        self._lock = threading.Lock()
        self._queue: "Optional[_native.CompletionQueue]" = None
        self._thread: Optional[threading.Thread] = None

    def queue(self) -> "_native.CompletionQueue":
        """Returns the queue of the thread."""
        queue = self._queue
        if queue is not None:
            return queue
        with self._lock:
            if self._queue is None:
                self._queue, self._thread = start_queue(self._name)
            return self._queue

    def end(self) -> None:
        """Ends the thread."""
        if self._queue is not None and self._thread is not None:
            self._queue.close()
            self._thread.join(_EXIT_TIMEOUT)

    def forget(self) -> None:
        """Leaves the queue to the parent process, whose thread the child does not have."""
        self._lock = threading.Lock()
        self._queue = self._thread = None


_callbacks = _Runner("thalweg-callbacks")
_events = _Runner("thalweg-events")


def callbacks() -> "_native.CompletionQueue":
    """Returns the queue of the thread that runs the callbacks of the application."""
    return _callbacks.queue()


def events() -> "_native.CompletionQueue":
    """Returns the queue of the thread that changes objects the application may wait for in a callback.

    It runs no code of the application, so it always makes progress.
    """
    return _events.queue()


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
    for runner in (_callbacks, _events):
        runner.end()


def _after_fork_in_child() -> None:
    for runner in (_callbacks, _events):
        runner.forget()


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork_in_child)
