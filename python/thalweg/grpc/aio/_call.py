"""Calls of clients without interceptors."""

import asyncio
import logging
import traceback
import weakref

from thalweg import _native
from thalweg.grpc.aio import _base
from thalweg.grpc.aio._eof import EOF
from thalweg.grpc.aio._errors import (
    COLLECTED,
    AioRpcError,  # noqa: F401: other packages import it from here
    debug_text,
    finished,
    half_closed,
    mixed_styles,
    status_text,
)
from thalweg.grpc.aio._loops import run_callback
from thalweg.grpc.aio._metadata import Metadata

_LOGGER = logging.getLogger("thalweg.grpc")


class _CallMixin:
    """Coroutines on top of `_end()`, an awaitable of the end, and `_outcome()`, which is the end."""

    __slots__ = ()

    async def _ended(self):
        await self._end()
        return self._outcome()

    async def trailing_metadata(self):
        """Waits for the end of the RPC and returns the server's trailing metadata."""
        return Metadata.from_tuple((await self._ended())[3])

    async def code(self):
        """Waits for the end of the RPC and returns its status code."""
        return (await self._ended())[0]

    async def details(self):
        """Waits for the end of the RPC and returns the text of its status."""
        return (await self._ended())[1]

    async def debug_error_string(self):
        """Waits for the end of the RPC and returns all that is known about a failure."""
        code, details, _, _ = await self._ended()
        return None if self._is_cancelled_here() else debug_text(code, details)

    def __repr__(self):
        outcome = self._outcome()
        if outcome is None:
            return f"<{type(self).__name__} of RPC in progress>"
        code, details, _, _ = outcome
        debug = None if self._is_cancelled_here() else debug_text(code, details)
        return status_text(type(self).__name__, code, details, debug or None)


# Unary calls are native objects.


async def _metadata(awaitable):
    return Metadata.from_tuple(await awaitable)


def _unary_initial_metadata(self):
    """Waits for the server's initial metadata and returns it.

    It is known before the response if this is called at once, before the event loop has sent the request; later, it is
    known with the response.
    """
    return _metadata(self._headers())


async def _unary_wait_for_connection(self):
    """Waits for the end of the RPC. Raises `AioRpcError` if it is not OK."""
    await self._end()
    self._raise_for_status()


def _complete(native):
    for name in ("_ended", "trailing_metadata", "code", "details", "debug_error_string", "__repr__"):
        setattr(native, name, getattr(_CallMixin, name))
    native.initial_metadata = _unary_initial_metadata
    native.wait_for_connection = _unary_wait_for_connection
    _base.UnaryUnaryCall.register(native)


_complete(_native.UnaryUnaryCall)
_base.UnaryUnaryMultiCallable.register(_native.UnaryUnaryMultiCallable)

# Calls with streams.

#: Styles of reading responses or writing requests.
_UNKNOWN, _ITERATOR, _METHODS = range(3)


class _StreamCall(_CallMixin):
    """A call with a stream, around the native `_native.StreamCall`."""

    #: Whether the call goes on when it is dropped, until its only response.
    _outlives = False

    def __init__(self, native, loop):
        self._native = native
        self._loop = loop
        self._callbacks = None

    def __del__(self):
        if self._outlives:
            return
        # Without it, the call could not be started.
        native = getattr(self, "_native", None)
        if native is None or not native.cancel(COLLECTED) or not self._callbacks:
            return
        try:
            self._loop.call_soon_threadsafe(self._run_callbacks)
        except RuntimeError:
            # The loop is closed.
            pass

    def _end(self):
        return self._native.end()

    def _outcome(self):
        return self._native.outcome()

    def _is_cancelled_here(self):
        return self._native.cancelled()

    def cancel(self):
        """Cancels the RPC. Returns whether it did."""
        return self._native.cancel()

    def cancelled(self):
        """Returns whether the RPC was cancelled, by whichever side."""
        return self._native.has_status_cancelled()

    def done(self):
        """Returns whether the RPC has ended, and all of its responses were taken."""
        return self._native.done()

    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""
        return self._native.time_remaining()

    async def initial_metadata(self):
        """Waits for the server's initial metadata and returns it."""
        return Metadata.from_tuple(await self._native.initial_metadata())

    async def wait_for_connection(self):
        """Waits until a connection has accepted the RPC. Raises `AioRpcError` if it ended with another status than OK."""
        await self._native.connection()
        self._native.raise_for_status()

    def add_done_callback(self, callback):
        """Calls `callback` with the call when it has ended."""
        if self._callbacks is not None:
            self._callbacks.append(callback)
            return
        # A callback must not keep the call of a stream of responses, which is cancelled when it is dropped.
        reference = (lambda: self) if self._outlives else weakref.ref(self)
        if self._native.on_end(_run_callbacks, reference):
            self._callbacks = [callback]
        else:
            callback(self)

    def _run_callbacks(self):
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            run_callback(self._loop, callback, self)


def _run_callbacks(reference):
    call = reference()
    if call is not None:
        call._run_callbacks()


class _WithResponses:
    """The stream of responses."""

    _reading = _UNKNOWN

    def __aiter__(self):
        if self._reading == _METHODS:
            raise mixed_styles()
        self._reading = _ITERATOR
        return self._native.responses(self)

    async def read(self):
        """Waits for the next response and returns it, or `EOF` after the last one."""
        if self._reading != _METHODS:
            if self._native.done():
                self._native.raise_for_status()
                return EOF
            if self._reading == _ITERATOR:
                raise mixed_styles()
            self._reading = _METHODS
        return await self._native.receive()


class _WithRequests:
    """The stream of requests."""

    _is_half_closed = False

    def _start_requests(self, request_iterator, serializer):
        self._serializer = serializer
        self._writing = _METHODS if request_iterator is None else _ITERATOR
        if request_iterator is not None:
            # The task has no reference to the call, which is cancelled when it is dropped.
            task = self._loop.create_task(_send_all(self._native, request_iterator, serializer))
            self._native.on_end(_cancel_task, task)

    async def write(self, request):
        """Sends a request. Waits for a connection first, and for room to send more.

        Raises:
            UsageError: The call has an iterator of requests.
            asyncio.InvalidStateError: The call has ended, or `done_writing` was called.
            AioRpcError: The call has ended meanwhile.
        """
        if self._writing != _METHODS:
            raise mixed_styles()
        native = self._native
        if native.done():
            raise finished()
        if self._is_half_closed:
            raise half_closed()
        if not native.is_connected():
            await native.connection()
            native.raise_for_status()
        room = native.send(request if self._serializer is None else self._serializer(request))
        if room is True:
            return
        if room is False:
            native.raise_for_status()
            raise finished()
        await room
        native.raise_for_status()

    async def done_writing(self):
        """Ends the requests. Further calls have no effect."""
        if self._writing != _METHODS:
            raise mixed_styles()
        self._is_half_closed = True
        self._native.done_sending()


def _cancel_task(task):
    # A task that has ended ignores it.
    task.cancel()


async def _send_all(native, requests, serializer):
    """Sends the requests of an iterable. If it raises, the call is cancelled."""
    try:
        if hasattr(requests, "__aiter__"):
            async for request in requests:
                room = native.send(request if serializer is None else serializer(request))
                if room is not True:
                    if room is False:
                        return
                    await room
        else:
            for request in requests:
                room = native.send(request if serializer is None else serializer(request))
                if room is not True:
                    if room is False:
                        return
                    await room
        native.done_sending()
    except (Exception, asyncio.CancelledError):
        if native.cancel():
            _LOGGER.debug("A request iterator failed, which cancels its call:\n%s", traceback.format_exc())
    except BaseException:
        native.cancel()
        raise


class UnaryStreamCall(_WithResponses, _StreamCall, _base.UnaryStreamCall):
    """A call with one request and a stream of responses."""

    def __init__(self, native, loop, request):
        super().__init__(native, loop)
        native.send(request)
        native.done_sending()


class StreamUnaryCall(_WithRequests, _StreamCall, _base.StreamUnaryCall):
    """A call with a stream of requests and one response."""

    _outlives = True

    def __init__(self, native, loop, request_iterator, serializer):
        super().__init__(native, loop)
        self._start_requests(request_iterator, serializer)

    def __await__(self):
        return self._native.awaited_response()


class StreamStreamCall(_WithRequests, _WithResponses, _StreamCall, _base.StreamStreamCall):
    """A call with streams in both directions."""

    def __init__(self, native, loop, request_iterator, serializer):
        super().__init__(native, loop)
        self._start_requests(request_iterator, serializer)
