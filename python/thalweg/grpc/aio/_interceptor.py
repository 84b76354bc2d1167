"""Interceptors of clients, and the calls that run them."""

import abc
import asyncio
import collections
import functools
import time
from typing import NamedTuple, Optional

from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import ClientCallDetails as _AbstractDetails
from thalweg.grpc.aio import _base
from thalweg.grpc.aio._base import StreamStreamCall, UnaryStreamCall  # noqa: F401: others import them from here
from thalweg.grpc.aio._eof import EOF
from thalweg.grpc.aio._errors import CANCELLED, AioRpcError, finished, half_closed, mixed_styles
from thalweg.grpc.aio._loops import run_callback
from thalweg.grpc.aio._metadata import Metadata


class _Details(NamedTuple):
    method: bytes
    timeout: Optional[float]
    metadata: Optional[Metadata]
    credentials: Optional[object]
    wait_for_ready: Optional[bool]


class ClientCallDetails(_Details, _AbstractDetails):
    """A call as its interceptors see it.

    Attributes:
        method: Path of the method, in bytes.
        timeout: Seconds until the deadline, or None.
        metadata: `Metadata` to send, or None.
        credentials: `CallCredentials`, or None.
        wait_for_ready: Whether the call waits while the server cannot be reached; None for the default.
    """


class ClientInterceptor(metaclass=abc.ABCMeta):
    """Base of the four kinds of interceptors. A class may be of several kinds."""


class UnaryUnaryClientInterceptor(ClientInterceptor):
    """Code around calls with one request and one response."""

    @abc.abstractmethod
    async def intercept_unary_unary(self, continuation, client_call_details, request):
        """Runs a call.

        Args:
            continuation: `await continuation(client_call_details, request)` starts the call, or the next interceptor, and
                returns a `UnaryUnaryCall`. It may be called several times, or not at all.
            client_call_details: The call's `ClientCallDetails`.
            request: The request.

        Returns:
            A `UnaryUnaryCall`, or a response.
        """


class UnaryStreamClientInterceptor(ClientInterceptor):
    """Code around calls with one request and a stream of responses."""

    @abc.abstractmethod
    async def intercept_unary_stream(self, continuation, client_call_details, request):
        """Runs a call, with arguments as of `intercept_unary_unary`.

        Returns:
            A `UnaryStreamCall`, or an asynchronous iterator of responses.
        """


class StreamUnaryClientInterceptor(ClientInterceptor):
    """Code around calls with a stream of requests and one response."""

    @abc.abstractmethod
    async def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
        """Runs a call, with arguments as of `intercept_unary_unary`.

        Args:
            continuation: Starts the call.
            client_call_details: The call's `ClientCallDetails`.
            request_iterator: The iterable of requests that the call was given, or an asynchronous iterator of those that
                are written to it.

        Returns:
            A `StreamUnaryCall`, or a response.
        """


class StreamStreamClientInterceptor(ClientInterceptor):
    """Code around calls with streams in both directions."""

    @abc.abstractmethod
    async def intercept_stream_stream(self, continuation, client_call_details, request_iterator):
        """Runs a call, with arguments as of `intercept_stream_unary`.

        Returns:
            A `StreamStreamCall`, or an asynchronous iterator of responses.
        """


#: The kinds of interceptors, and the names of their methods.
KINDS = {
    "unary_unary": UnaryUnaryClientInterceptor,
    "unary_stream": UnaryStreamClientInterceptor,
    "stream_unary": StreamUnaryClientInterceptor,
    "stream_stream": StreamStreamClientInterceptor,
}


class InterceptedCall:
    """A call that interceptors run, in a task of its own.

    Its result is another call, which this one represents from then on.
    """

    #: Kind of call, by which the method of interceptors is found.
    _kind: str

    def __init__(self, interceptors, start, details, request, loop):
        """Starts a call.

        Args:
            interceptors: Interceptors, the outermost first.
            start: A coroutine function that starts the call without interceptors.
            details: The call's `ClientCallDetails`.
            request: The request, or an iterable of them.
            loop: The running event loop.
        """
        self._loop = loop
        self._start = start
        self._callbacks = []
        self._deadline = None if details.timeout is None else time.monotonic() + details.timeout
        self._task = loop.create_task(self._run(tuple(interceptors), details, request))
        self._task.add_done_callback(self._interceptors_returned)

    async def _run(self, interceptors, details, request):
        if not interceptors:
            return await self._start(details, request)
        started = []

        async def continuation(client_call_details, request):
            call = await self._run(interceptors[1:], client_call_details, request)
            started.append(call)
            return call

        result = await getattr(interceptors[0], f"intercept_{self._kind}")(continuation, details, request)
        return self._call_of(result, started)

    def _call_of(self, result, started):
        """Returns the call for an interceptor's result. `started` are the calls that it has started."""
        raise NotImplementedError()

    def _interceptors_returned(self, task):
        callbacks, self._callbacks = self._callbacks, []
        # Asking for the exception also keeps asyncio from reporting one that nobody awaits.
        if task.cancelled() or task.exception() is not None:
            for callback in callbacks:
                run_callback(self._loop, callback, self)
            return
        for callback in callbacks:
            task.result().add_done_callback(functools.partial(self._call_callback, callback))

    def _call_callback(self, callback, _call):
        callback(self)

    def _known(self):
        """Returns the call that the interceptors have returned, or None."""
        task = self._task
        if not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def _settled(self):
        """Waits for the interceptors. Returns the call that they return, or raises their exception.

        Giving up does not cancel them.
        """
        if not self._task.done():
            await asyncio.wait((self._task,))
        return self._task.result()

    def cancel(self):
        """Cancels the RPC, or its interceptors. Returns whether it did."""
        if not self._task.done():
            return self._task.cancel()
        call = self._known()
        return call is not None and call.cancel()

    def cancelled(self):
        """Returns whether the RPC was cancelled."""
        task = self._task
        if not task.done():
            return False
        if task.cancelled():
            return True
        error = task.exception()
        if error is not None:
            return isinstance(error, AioRpcError) and error.code() is StatusCode.CANCELLED
        return task.result().cancelled()

    def done(self):
        """Returns whether the RPC has ended."""
        if not self._task.done():
            return False
        call = self._known()
        return call is None or call.done()

    def add_done_callback(self, callback):
        """Calls `callback` with this call when the RPC has ended."""
        if not self._task.done():
            self._callbacks.append(callback)
            return
        call = self._known()
        if call is None:
            callback(self)
        else:
            call.add_done_callback(functools.partial(self._call_callback, callback))

    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""
        call = self._known()
        if call is not None:
            return call.time_remaining()
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    async def _fact(self, name, when_cancelled):
        """Returns a fact of the call, or of the error that the interceptors have raised."""
        if not self._task.done():
            await asyncio.wait((self._task,))
        if self._task.cancelled():
            return when_cancelled
        error = self._task.exception()
        if isinstance(error, AioRpcError):
            return getattr(error, name)()
        return await getattr(self._task.result(), name)()

    async def initial_metadata(self):
        """Waits for the server's initial metadata and returns it; None if the interceptors were cancelled."""
        return await self._fact("initial_metadata", None)

    async def trailing_metadata(self):
        """Waits for the end and returns the server's trailing metadata; None if the interceptors were cancelled."""
        return await self._fact("trailing_metadata", None)

    async def code(self):
        """Waits for the end of the RPC and returns its status code."""
        return await self._fact("code", StatusCode.CANCELLED)

    async def details(self):
        """Waits for the end of the RPC and returns the text of its status."""
        return await self._fact("details", CANCELLED)

    async def debug_error_string(self):
        """Waits for the end of the RPC and returns all that is known about a failure."""
        return await self._fact("debug_error_string", "")

    async def wait_for_connection(self):
        """Waits until a connection has accepted the RPC. Raises `AioRpcError` if it ended with another status than OK."""
        await (await self._settled()).wait_for_connection()


class _InterceptedResponse:
    """One response."""

    def __await__(self):
        return self._response().__await__()

    async def _response(self):
        # A caller that is cancelled while it waits cancels the interceptors.
        return await (await self._task)


class _InterceptedResponses:
    """A stream of responses."""

    #: The iterator given by `__aiter__`.
    _iterator = None
    #: The iterator that `read` uses.
    _read_from = None

    def __aiter__(self):
        if self._read_from is not None:
            raise mixed_styles()
        if self._iterator is None:
            self._iterator = self._iterate()
        return self._iterator

    async def _iterate(self):
        async for response in await self._task:
            yield response

    async def read(self):
        """Waits for the next response and returns it, or `EOF` after the last one."""
        if self._iterator is not None:
            if self.done():
                await (await self._settled()).wait_for_connection()
                return EOF
            raise mixed_styles()
        if self._read_from is None:
            self._read_from = (await self._task).__aiter__()
        try:
            return await self._read_from.__anext__()
        except StopAsyncIteration:
            return EOF


class _Writes:
    """Requests on their way from `write` to an asynchronous iterator. A request is there until it is taken."""

    def __init__(self, loop):
        self._loop = loop
        self._requests = collections.deque()
        self._wanted = None
        self._is_over = False

    def __aiter__(self):
        return self

    async def __anext__(self):
        while not self._requests:
            if self._is_over:
                raise StopAsyncIteration
            self._wanted = self._loop.create_future()
            await self._wanted
        request, taken = self._requests.popleft()
        if not taken.done():
            taken.set_result(True)
        return request

    def put(self, request):
        """Adds a request. Returns a future of whether it was taken."""
        taken = self._loop.create_future()
        self._requests.append((request, taken))
        self._wake()
        return taken

    def close(self):
        """Ends the iterator after the requests that are there."""
        self._is_over = True
        self._wake()

    def abort(self):
        """Ends the iterator; nobody takes the requests that are there."""
        requests, self._requests = self._requests, collections.deque()
        self.close()
        for _, taken in requests:
            if not taken.done():
                taken.set_result(False)

    def _wake(self):
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)


class _InterceptedRequests:
    """A stream of requests."""

    _is_half_closed = False
    _writes = None

    def _requests(self, request_iterator, loop):
        """Returns what interceptors get in place of the request."""
        if request_iterator is None:
            self._writes = request_iterator = _Writes(loop)
        return request_iterator

    async def write(self, request):
        """Sends a request. Waits until it is taken.

        Raises:
            UsageError: The call has an iterator of requests.
            asyncio.InvalidStateError: The call has ended, or `done_writing` was called.
            AioRpcError: The call has ended meanwhile.
        """
        if self._writes is None:
            raise mixed_styles()
        if not self.done():
            if self._is_half_closed:
                raise half_closed()
            if await self._writes.put(request):
                return
            call = await self._settled()
            await call.wait_for_connection()
        elif self._known() is None:
            # Raises their exception.
            await self._settled()
        raise finished()

    async def done_writing(self):
        """Ends the requests. Further calls have no effect."""
        if self._writes is None:
            raise mixed_styles()
        self._is_half_closed = True
        self._writes.close()


class InterceptedUnaryUnaryCall(_InterceptedResponse, InterceptedCall, _base.UnaryUnaryCall):
    """A call with one request and one response, and interceptors."""

    _kind = "unary_unary"

    def _call_of(self, result, started):
        return result if isinstance(result, _base.UnaryUnaryCall) else UnaryUnaryCallResponse(result)


class InterceptedUnaryStreamCall(_InterceptedResponses, InterceptedCall, _base.UnaryStreamCall):
    """A call with one request and a stream of responses, and interceptors."""

    _kind = "unary_stream"

    def _call_of(self, result, started):
        if isinstance(result, _base.UnaryStreamCall):
            return result
        return UnaryStreamCallResponseIterator(started[-1] if started else None, result)


class InterceptedStreamUnaryCall(_InterceptedRequests, _InterceptedResponse, InterceptedCall, _base.StreamUnaryCall):
    """A call with a stream of requests and one response, and interceptors."""

    _kind = "stream_unary"

    def __init__(self, interceptors, start, details, request, loop):
        super().__init__(interceptors, start, details, self._requests(request, loop), loop)
        if self._writes is not None:
            self.add_done_callback(_abort_writes)

    def _call_of(self, result, started):
        return result if isinstance(result, _base.StreamUnaryCall) else StreamUnaryCallResponse(result)


class InterceptedStreamStreamCall(_InterceptedRequests, _InterceptedResponses, InterceptedCall, _base.StreamStreamCall):
    """A call with streams in both directions, and interceptors."""

    _kind = "stream_stream"

    def __init__(self, interceptors, start, details, request, loop):
        super().__init__(interceptors, start, details, self._requests(request, loop), loop)
        if self._writes is not None:
            self.add_done_callback(_abort_writes)

    def _call_of(self, result, started):
        if isinstance(result, _base.StreamStreamCall):
            return result
        return StreamStreamCallResponseIterator(started[-1] if started else None, result)


def _abort_writes(call):
    call._writes.abort()


#: The classes of calls with interceptors.
INTERCEPTED = {
    call._kind: call
    for call in (
        InterceptedUnaryUnaryCall,
        InterceptedUnaryStreamCall,
        InterceptedStreamUnaryCall,
        InterceptedStreamStreamCall,
    )
}


class _Response:
    """A call that ended with OK and a response that an interceptor has made."""

    def __init__(self, response):
        self._response = response

    def cancel(self):
        """Returns False: the call has ended."""
        return False

    def cancelled(self):
        """Returns False."""
        return False

    def done(self):
        """Returns True."""
        return True

    def add_done_callback(self, callback):
        """Calls `callback` at once."""
        callback(self)

    def time_remaining(self):
        """Returns None: there is no deadline."""
        return None

    async def initial_metadata(self):
        """Returns None: there is no server."""
        return None

    async def trailing_metadata(self):
        """Returns None: there is no server."""
        return None

    async def code(self):
        """Returns OK."""
        return StatusCode.OK

    async def details(self):
        """Returns an empty text."""
        return ""

    async def debug_error_string(self):
        """Returns None."""
        return None

    async def wait_for_connection(self):
        """Returns at once."""

    def __await__(self):
        return self._response
        yield


class UnaryUnaryCallResponse(_Response, _base.UnaryUnaryCall):
    """A response in place of a call with one request."""


class StreamUnaryCallResponse(_Response, _base.StreamUnaryCall):
    """A response in place of a call with a stream of requests."""

    async def write(self, request):
        """Raises `asyncio.InvalidStateError`: the call has ended."""
        raise finished()

    async def done_writing(self):
        """Returns at once."""


class _ResponseIterator:
    """A call whose responses come from an iterator that an interceptor has made.

    The rest is that of the last call that the interceptor has started. If there is none, the call ends with OK.
    """

    def __init__(self, call, responses):
        self._call = UnaryUnaryCallResponse(None) if call is None else call
        self._responses = responses

    def __aiter__(self):
        return self._responses.__aiter__()

    async def read(self):
        """Waits for the next response and returns it, or `EOF` after the last one."""
        try:
            return await self._responses.__aiter__().__anext__()
        except StopAsyncIteration:
            return EOF

    def cancel(self):
        """Cancels the RPC. Returns whether it did."""
        return self._call.cancel()

    def cancelled(self):
        """Returns whether the RPC was cancelled."""
        return self._call.cancelled()

    def done(self):
        """Returns whether the RPC has ended."""
        return self._call.done()

    def add_done_callback(self, callback):
        """Calls `callback` with the call when it has ended."""
        self._call.add_done_callback(lambda _: callback(self))

    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""
        return self._call.time_remaining()

    async def initial_metadata(self):
        """Waits for the server's initial metadata and returns it."""
        return await self._call.initial_metadata()

    async def trailing_metadata(self):
        """Waits for the end of the RPC and returns the server's trailing metadata."""
        return await self._call.trailing_metadata()

    async def code(self):
        """Waits for the end of the RPC and returns its status code."""
        return await self._call.code()

    async def details(self):
        """Waits for the end of the RPC and returns the text of its status."""
        return await self._call.details()

    async def debug_error_string(self):
        """Waits for the end of the RPC and returns all that is known about a failure."""
        return await self._call.debug_error_string()

    async def wait_for_connection(self):
        """Waits until a connection has accepted the RPC."""
        await self._call.wait_for_connection()


class UnaryStreamCallResponseIterator(_ResponseIterator, _base.UnaryStreamCall):
    """Responses of an interceptor in place of those of a call with one request."""


class StreamStreamCallResponseIterator(_ResponseIterator, _base.StreamStreamCall):
    """Responses of an interceptor in place of those of a call with a stream of requests."""

    async def write(self, request):
        """Sends a request by the call that the interceptor has started."""
        await self._call.write(request)

    async def done_writing(self):
        """Ends the requests of the call that the interceptor has started."""
        await self._call.done_writing()
