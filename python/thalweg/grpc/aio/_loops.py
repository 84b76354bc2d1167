"""Completion queues of event loops."""

import asyncio
import os
from typing import Any, Callable

from thalweg import _native

#: The queues of loops that were not closed when the last queue was created. A queue keeps its loop.
_queues: "dict[asyncio.AbstractEventLoop, _native.CompletionQueue]" = {}


def completions_of(loop: asyncio.AbstractEventLoop) -> _native.CompletionQueue:
    """Returns the queue of `loop`, which it creates and registers if there is none."""
    queue = _queues.get(loop)
    if queue is None:
        # A copy: other threads may add their loops.
        for other in list(_queues):
            if other.is_closed():
                _queues.pop(other, None)
        read_end, write_end = _descriptors()
        queue = _native.CompletionQueue(loop, read_end, write_end)
        loop.add_reader(read_end, queue.run)
        _queues[loop] = queue
    return queue


def init_grpc_aio() -> None:
    """Does nothing: what an event loop needs is set up by its first call or server, and again after `fork`."""


def shutdown_grpc_aio() -> None:
    """Does nothing: channels and servers are closed by themselves, and event loops are forgotten when they are closed."""


def run_callback(loop: asyncio.AbstractEventLoop, callback: Callable[[Any], Any], call: Any) -> None:
    """Calls `callback` with an ended call. The loop's exception handler gets an exception, as that of a task's callback."""
    try:
        callback(call)
    except Exception as error:
        message = "exception in a callback of a gRPC call"
        loop.call_exception_handler({"message": message, "exception": error})


def _descriptors() -> "tuple[int, int]":
    if hasattr(os, "eventfd"):
        descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return descriptor, os.dup(descriptor)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    return read_end, write_end
