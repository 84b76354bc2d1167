"""Calls of the blocking interface, and their errors."""

import logging
import sys
import threading
from types import TracebackType
from typing import Any, Callable, Iterable, Optional

from thalweg import _native
from thalweg.grpc._interfaces import Call, Future
from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import FutureCancelledError, FutureTimeoutError, RpcError

_LOGGER = logging.getLogger(__name__)

_NOT_DESERIALIZED = "Exception deserializing response!"
_NOT_SERIALIZED = "Exception serializing request!"
_NOT_ITERATED = "Exception iterating requests!"
_COLLECTED = "Cancelled upon garbage collection!"


def _text(call, code, details, debug_error_string) -> str:
    lines = [f"<{type(call).__name__} of RPC that terminated with:", f"\tstatus = {code}", f'\tdetails = "{details}"']
    if code is not StatusCode.OK:
        lines.append(f'\tdebug_error_string = "{debug_error_string}"')
    return "\n".join([*lines, ">"])


def _debug(code: StatusCode, details: str) -> str:
    return f"{code.name}:{details}"


class _Ended(Call, Future):
    """A call that has ended, with a status known when the object is made."""

    _code: StatusCode
    _details: str
    _initial_metadata: tuple
    _trailing_metadata: tuple

    def initial_metadata(self):
        return self._initial_metadata

    def trailing_metadata(self):
        return self._trailing_metadata

    def code(self):
        return self._code

    def details(self):
        return self._details

    def debug_error_string(self):
        """Returns the status as one line of text."""
        return _debug(self._code, self._details)

    def is_active(self):
        return False

    def time_remaining(self):
        return None

    def cancel(self):
        return False

    def cancelled(self):
        return False

    def running(self):
        return False

    def done(self):
        return True

    def add_callback(self, callback):
        return False

    def add_done_callback(self, fn):
        fn(self)

    def __str__(self):
        return _text(self, self._code, self._details, self.debug_error_string())

    __repr__ = __str__


class EndedCall(_Ended):
    """A call that has ended with OK, as `with_call` returns it."""

    def __init__(self, response, details, initial_metadata, trailing_metadata):
        self._response = response
        self._code = StatusCode.OK
        self._details = details
        self._initial_metadata = initial_metadata
        self._trailing_metadata = trailing_metadata

    def result(self, timeout=None):
        return self._response

    def exception(self, timeout=None):
        return None

    def traceback(self, timeout=None):
        return None


class _InactiveRpcError(_Ended, RpcError):
    """A call that has ended with another status than OK: an exception, and a `Call`."""

    def __init__(self, code, details, initial_metadata=(), trailing_metadata=()):
        super().__init__()
        self._code = code
        self._details = details
        self._initial_metadata = initial_metadata
        self._trailing_metadata = trailing_metadata

    def result(self, timeout=None):
        raise self

    def exception(self, timeout=None):
        return self

    def traceback(self, timeout=None):
        return _traceback(self)

    def __reduce__(self):
        return type(self), (self._code, self._details, self._initial_metadata, self._trailing_metadata)


def _traceback(error: BaseException) -> Optional[TracebackType]:
    """Returns the traceback of an exception, from where it was raised or from here."""
    try:
        raise error
    except BaseException:
        return sys.exc_info()[2]


class _Rendezvous(RpcError, Call, Future):
    """A call in progress. It raises itself if it fails.

    The native call does not know it, and the call is cancelled when nobody has it any more.
    """

    def __init__(self, call: _native.StreamCall):
        super().__init__()
        self._call = call
        self._is_cancelled = False

    def _ended(self) -> tuple:
        """Waits for the end of the call and returns its code, details, initial and trailing metadata."""
        self._call.end_blocking()
        return self._call.outcome()

    def _wait(self, timeout) -> None:
        if not self._call.end_blocking(timeout):
            raise FutureTimeoutError()
        if self.cancelled():
            raise FutureCancelledError()

    # Call

    def is_active(self):
        return not self._call.done()

    def time_remaining(self):
        return self._call.time_remaining()

    def cancel(self):
        # First, so that another thread that sees the end finds it.
        was_cancelled, self._is_cancelled = self._is_cancelled, True
        is_cancelled = self._call.cancel()
        if not is_cancelled and not was_cancelled:
            self._is_cancelled = False
        return is_cancelled

    def add_callback(self, callback):
        return self._call.on_end(_without_argument(callback), None)

    def initial_metadata(self):
        return self._call.initial_metadata_blocking()

    def trailing_metadata(self):
        return self._ended()[3]

    def code(self):
        return self._ended()[0]

    def details(self):
        return self._ended()[1]

    def debug_error_string(self):
        """Waits for the end of the RPC and returns its status as one line of text."""
        code, details, *_ = self._ended()
        return _debug(code, details)

    # Future

    def cancelled(self):
        return self._is_cancelled and self._call.cancelled()

    def running(self):
        return not self._call.done()

    def done(self):
        return self._call.done()

    def result(self, timeout=None):
        self._wait(timeout)
        if self.code() is StatusCode.OK:
            return self._response()
        raise self

    def _response(self) -> Any:
        return None

    def exception(self, timeout=None):
        self._wait(timeout)
        return None if self.code() is StatusCode.OK else self

    def traceback(self, timeout=None):
        self._wait(timeout)
        return None if self.code() is StatusCode.OK else _traceback(self)

    def add_done_callback(self, fn):
        if not self._call.on_end(fn, self):
            fn(self)

    def __str__(self):
        if not self._call.done():
            return f"<{type(self).__name__} object>"
        code, details, *_ = self._ended()
        return _text(self, code, details, _debug(code, details))

    __repr__ = __str__

    def __del__(self):
        # Without the attribute, the constructor has failed.
        call = getattr(self, "_call", None)
        if call is not None:
            call.cancel(_COLLECTED)


class _MultiThreadedRendezvous(_Rendezvous):
    """A call with a stream of responses: an iterator, for any number of threads."""

    def __iter__(self):
        return self

    def __next__(self):
        response = self._call.receive_blocking()
        if response is not None:
            return response
        if self.code() is StatusCode.OK:
            raise StopIteration()
        raise self

    def next(self):
        """Waits for the next response and returns it."""
        return self.__next__()


class _ResponseFuture(_Rendezvous):
    """A call with one response, which the first use after the end deserializes."""

    def __init__(self, call: _native.StreamCall, deserializer: Optional[Callable[[bytes], Any]]):
        super().__init__(call)
        self._deserializer = deserializer
        self._lock = threading.Lock()
        self._outcome = None
        self._value = None

    def _ended(self):
        if self._outcome is None:
            self._call.end_blocking()
            with self._lock:
                if self._outcome is None:
                    self._outcome = self._deserialize()
        return self._outcome

    def _deserialize(self) -> tuple:
        outcome = self._call.outcome()
        if outcome[0] is not StatusCode.OK:
            return outcome
        message = self._call.response()
        if self._deserializer is not None:
            try:
                message = self._deserializer(message)
            except Exception as error:
                log_not_deserialized(error)
                message = None
            if message is None:
                return (StatusCode.INTERNAL, _NOT_DESERIALIZED, *outcome[2:])
        self._value = message
        return outcome

    def _response(self):
        return self._value


def _without_argument(callback: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda _: callback()


def error_of(call: _Rendezvous) -> _InactiveRpcError:
    """Returns the exception of a failed call that its caller has waited for."""
    code, details, initial_metadata, trailing_metadata = call._ended()
    return _InactiveRpcError(code, details, initial_metadata, trailing_metadata)


def serialize(serializer: Optional[Callable[[Any], bytes]], request: Any) -> bytes:
    """Serializes the request of a call.

    Raises:
        RpcError: the serializer raised an exception, or returned None.
    """
    if serializer is None:
        return request
    try:
        message = serializer(request)
    except Exception as error:
        log_not_serialized(error)
        raise _InactiveRpcError(StatusCode.INTERNAL, _NOT_SERIALIZED) from error
    if message is None:
        raise _InactiveRpcError(StatusCode.INTERNAL, _NOT_SERIALIZED)
    return message


def send_requests(call: _native.StreamCall, requests: Iterable, serializer: Optional[Callable[[Any], bytes]]) -> None:
    """Sends requests on a thread of their own, until there are no more or the call has ended."""
    thread = threading.Thread(
        target=_send_requests, args=(call, requests, serializer), name="thalweg-requests", daemon=True
    )
    thread.start()


def _send_requests(call, requests, serializer) -> None:
    unknown, internal = StatusCode.UNKNOWN.value[0], StatusCode.INTERNAL.value[0]
    try:
        iterator = iter(requests)
        while True:
            try:
                request = next(iterator)
            except StopIteration:
                break
            if call.done():
                return
            try:
                message = request if serializer is None else serializer(request)
            except Exception as error:
                log_not_serialized(error)
                message = None
            if message is None:
                call.fail(internal, _NOT_SERIALIZED)
                return
            if not call.send_blocking(message):
                return
    except Exception as error:
        if not call.done():
            _LOGGER.error("exception in the iterator of requests", exc_info=error)
            call.fail(unknown, _NOT_ITERATED)
        return
    call.done_sending()


def log_not_serialized(error: BaseException) -> None:
    """Logs the exception of a serializer."""
    _LOGGER.error("exception in the serializer of a request", exc_info=error)


def log_not_deserialized(error: BaseException) -> None:
    """Logs the exception of a deserializer."""
    _LOGGER.error("exception in the deserializer of a response", exc_info=error)
