"""Interceptors of the blocking interface's clients."""

from typing import Any, NamedTuple, Optional

from thalweg.grpc import _interfaces
from thalweg.grpc._call import _traceback
from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import ClientCallDetails, RpcError

_FAILED = "Exception raised while intercepting the RPC"

_KINDS = (
    _interfaces.UnaryUnaryClientInterceptor,
    _interfaces.UnaryStreamClientInterceptor,
    _interfaces.StreamUnaryClientInterceptor,
    _interfaces.StreamStreamClientInterceptor,
)


class _ClientCallDetails(
    NamedTuple(
        "_ClientCallDetails",
        [
            ("method", str),
            ("timeout", Optional[float]),
            ("metadata", Any),
            ("credentials", Any),
            ("wait_for_ready", Optional[bool]),
            ("compression", Any),
        ],
    ),
    ClientCallDetails,
):
    """The details of a call, as interceptors get them."""


def _arguments(details, defaults: _ClientCallDetails) -> "tuple[str, dict]":
    """Returns the method and the arguments of a call, from details that may lack some attributes."""
    arguments = {name: getattr(details, name, getattr(defaults, name)) for name in defaults._fields}
    return arguments.pop("method"), arguments


class _FailureOutcome(RpcError, _interfaces.Future, _interfaces.Call):
    """A call whose interceptor has raised an exception."""

    def __init__(self, exception: Exception):
        super().__init__()
        self._exception = exception
        self._trace = exception.__traceback__

    def initial_metadata(self):
        return None

    def trailing_metadata(self):
        return None

    def code(self):
        return StatusCode.INTERNAL

    def details(self):
        return _FAILED

    def cancel(self):
        return False

    def cancelled(self):
        return False

    def is_active(self):
        return False

    def time_remaining(self):
        return None

    def running(self):
        return False

    def done(self):
        return True

    def result(self, timeout=None):
        raise self._exception

    def exception(self, timeout=None):
        return self._exception

    def traceback(self, timeout=None):
        return self._trace

    def add_callback(self, callback):
        return False

    def add_done_callback(self, fn):
        fn(self)

    def __iter__(self):
        return self

    def __next__(self):
        raise self._exception

    def next(self):
        """Raises the exception."""
        return self.__next__()


#: grpcio's name of the results of interceptors, which other packages import for annotations.
_UnaryOutcome = _interfaces.Call


class _Intercepted:
    """A method whose calls go through an interceptor."""

    def __init__(self, create, method, intercept):
        """Wraps a method.

        Args:
            create: Returns the callable of a method by its path; an interceptor may change it.
            method: The path of the method.
            intercept: The interceptor's function.
        """
        self._create = create
        self._name = method
        self._method = create(method)
        self._intercept = intercept

    def _callable(self, method):
        return self._method if method == self._name else self._create(method)

    def _start(self, invoke, request, *details):
        """Calls the interceptor, whose continuation calls `invoke(callable, request, arguments)`."""
        details = _ClientCallDetails(self._name, *details)

        def continuation(new_details, new_request):
            method, arguments = _arguments(new_details, details)
            return invoke(self._callable(method), new_request, arguments)

        return self._intercept(continuation, details, request)


class _OneResponse(_Intercepted):
    """A method with one response."""

    def _with_call(self, *arguments):
        call = self._start(_wait, *arguments)
        return call.result(), call

    def _future(self, *arguments):
        try:
            return self._start(_future, *arguments)
        except Exception as error:
            return _FailureOutcome(error)


class _Responses(_Intercepted):
    """A method with a stream of responses."""

    def _responses(self, *arguments):
        try:
            return self._start(_call, *arguments)
        except Exception as error:
            return _FailureOutcome(error)


def _wait(method, request, arguments):
    """Calls a method and returns the ended call, whatever its status."""
    try:
        return method.with_call(request, **arguments)[1]
    except RpcError as error:
        return error
    except Exception as error:
        return _FailureOutcome(error)


def _future(method, request, arguments):
    return method.future(request, **arguments)


def _call(method, request, arguments):
    return method(request, **arguments)


class _UnaryUnary(_OneResponse, _interfaces.UnaryUnaryMultiCallable):
    KIND = _interfaces.UnaryUnaryClientInterceptor

    def __call__(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        return self._with_call(request, timeout, metadata, credentials, wait_for_ready, compression)[0]

    def with_call(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        return self._with_call(request, timeout, metadata, credentials, wait_for_ready, compression)

    def future(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        return self._future(request, timeout, metadata, credentials, wait_for_ready, compression)


class _UnaryStream(_Responses, _interfaces.UnaryStreamMultiCallable):
    KIND = _interfaces.UnaryStreamClientInterceptor

    def __call__(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        return self._responses(request, timeout, metadata, credentials, wait_for_ready, compression)


class _StreamUnary(_OneResponse, _interfaces.StreamUnaryMultiCallable):
    KIND = _interfaces.StreamUnaryClientInterceptor

    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._with_call(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)[0]

    def with_call(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._with_call(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)

    def future(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._future(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)


class _StreamStream(_Responses, _interfaces.StreamStreamMultiCallable):
    KIND = _interfaces.StreamStreamClientInterceptor

    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._responses(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)


class _Channel(_interfaces.Channel):
    """A channel whose calls go through an interceptor."""

    def __init__(self, channel, interceptor):
        self._channel = channel
        self._interceptor = interceptor

    def subscribe(self, callback, try_to_connect=False):
        self._channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback):
        self._channel.unsubscribe(callback)

    def _method(self, name, intercepted, method, serializer, deserializer, registered):
        """Returns the callable of a method of the call type `name`, through the interceptor if it is of that type."""
        create = getattr(self._channel, name)
        # Channels of other packages need not know registered methods.
        keywords = {"_registered_method": registered} if registered else {}
        intercept = getattr(self._interceptor, f"intercept_{name}", None)
        if intercept is None or not isinstance(self._interceptor, intercepted.KIND):
            return create(method, serializer, deserializer, **keywords)
        return intercepted(lambda path: create(path, serializer, deserializer, **keywords), method, intercept)

    def unary_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        return self._method(
            "unary_unary", _UnaryUnary, method, request_serializer, response_deserializer, _registered_method
        )

    def unary_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        return self._method(
            "unary_stream", _UnaryStream, method, request_serializer, response_deserializer, _registered_method
        )

    def stream_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        return self._method(
            "stream_unary", _StreamUnary, method, request_serializer, response_deserializer, _registered_method
        )

    def stream_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        return self._method(
            "stream_stream", _StreamStream, method, request_serializer, response_deserializer, _registered_method
        )

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
        return False


def intercept_channel(channel, *interceptors):
    """Returns a channel whose calls go through `interceptors`, the first one first.

    Raises:
        TypeError: An interceptor is of none of the four kinds.
    """
    for interceptor in reversed(interceptors):
        if not isinstance(interceptor, _KINDS):
            raise TypeError(
                f"a {type(interceptor).__name__} is no client interceptor; derive it from one of "
                + ", ".join(f"grpc.{kind.__name__}" for kind in _KINDS)
            )
        channel = _Channel(channel, interceptor)
    return channel
