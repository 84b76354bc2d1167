"""Completion queues of event loops."""

import asyncio
import os
import weakref

from thalweg import _native

_queues: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _native.CompletionQueue]" = weakref.WeakKeyDictionary()


def completions_of(loop: asyncio.AbstractEventLoop) -> _native.CompletionQueue:
    """Returns the queue of `loop`, which it creates and registers if there is none."""
    queue = _queues.get(loop)
    if queue is None:
        read_end, write_end = _descriptors()
        queue = _native.CompletionQueue(loop, read_end, write_end)
        loop.add_reader(read_end, queue.run)
        _queues[loop] = queue
    return queue


def _descriptors() -> "tuple[int, int]":
    if hasattr(os, "eventfd"):
        descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return descriptor, os.dup(descriptor)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    return read_end, write_end
