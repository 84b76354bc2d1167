"""Completion queues of event loops."""

import asyncio
import functools
import weakref
from typing import Any, Callable

from thalweg import _native
from thalweg.grpc._threads import wake_descriptors

#: The queues of loops that are not closed. A queue keeps its loop.
_queues: "dict[asyncio.AbstractEventLoop, _native.CompletionQueue]" = {}


def completions_of(loop: asyncio.AbstractEventLoop) -> _native.CompletionQueue:
    """Returns the queue of `loop`, which it creates and registers if there is none."""
    queue = _queues.get(loop)
    if queue is None:
        # Loops that are closed, and have kept their readers. A copy: other threads may add their loops.
        for other in list(_queues):
            if other.is_closed():
                _forget(other)
        read_end, write_end = wake_descriptors(blocks=False)
        queue = _native.CompletionQueue(loop, read_end, write_end)
        reader = functools.partial(queue.run)
        # asyncio and uvloop drop their readers when they are closed.
        weakref.finalize(reader, _forget, loop).atexit = False
        loop.add_reader(read_end, reader)
        _queues[loop] = queue
    return queue


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    """Closes the queue of a closed loop."""
    queue = _queues.pop(loop, None)
    if queue is not None:
        queue.close()


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
