"""Channels of the blocking interface, and their methods."""

import time
from typing import Any, Callable, NamedTuple, Optional

from thalweg import _native
from thalweg.grpc import _credentials, _interfaces, _options, _threads
from thalweg.grpc._call import (
    _InactiveRpcError,
    _MultiThreadedRendezvous,
    _Rendezvous,
    _ResponseFuture,
    error_of,
    send_requests,
    serialize,
)
from thalweg.grpc._connectivity import Subscriptions
from thalweg.grpc._status import StatusCode

#: Details of calls that end with their channel.
_CLOSED = "Channel closed!"
_INVALID_METADATA = "Invalid metadata"

#: Returns the metadata of a call with that of its credentials, and the time left. Gets the method, the credentials of
#: the call or None, its metadata and its timeout.
Authorize = Callable[[str, Any, Any, Optional[float]], "tuple[Any, Optional[float]]"]


def insecure_channel(target, options=None, compression=None):
    """Returns a channel to `target` without encryption.

    Args:
        target: The server's address: a gRPC target URI, or a host and port.
        options: Pairs of names and values of channel options.
        compression: A `Compression` of the requests of all calls that set none of their own.
    """
    return _channel(target, None, options, compression)


def secure_channel(target, credentials, options=None, compression=None):
    """Returns a channel to `target` with `ChannelCredentials`. See `insecure_channel`.

    Raises:
        TypeError: `credentials` has a wrong type.
        ValueError: The certificates or keys cannot be used, or local credentials do not apply to the target.
    """
    # Checks the type.
    _credentials.native_channel_credentials(credentials)
    return _channel(target, credentials, options, compression)


def _channel(target: str, credentials: Optional[_credentials.ChannelCredentials], options, compression) -> "Channel":
    settings = _options.channel_settings(options, compression)
    native = None if credentials is None else _credentials.native_channel_credentials(credentials)
    channel = _native.Channel(target, settings, native)
    authorize = _authorizer(credentials, _credentials.authority_of(target, settings))
    try:
        always_authorizes = _credentials.call_credentials_of(credentials, None) is not None
    except _credentials.CredentialsError:
        # All calls fail.
        always_authorizes = True
    return Channel(channel, authorize, always_authorizes)


def _authorizer(credentials: Optional[_credentials.ChannelCredentials], authority: str) -> Authorize:
    """Returns a function that adds the metadata of the channel's and the call's credentials to that of a call."""

    def authorize(method, call_credentials, metadata, timeout):
        started = time.monotonic()
        try:
            of_call = _credentials.call_credentials_of(credentials, call_credentials)
            if of_call is None:
                return metadata, timeout
            context = _credentials.context_of(credentials, authority, method)
            added = _credentials.metadata_of(of_call, context, timeout)
        except _credentials.CredentialsError as error:
            raise _InactiveRpcError(error.code, error.details) from error
        left = None if timeout is None else timeout - (time.monotonic() - started)
        return [*(metadata or ()), *added], left

    return authorize


class _Authorization(NamedTuple):
    """Adds the metadata of credentials to that of calls."""

    method: str
    authorize: Authorize
    always_authorizes: bool

    def apply(self, credentials, metadata, timeout):
        """Returns the metadata of a call with that of its credentials and the channel's, and the time left.

        Raises:
            RpcError: There is none, and the call fails with this status.
        """
        if credentials is None and not self.always_authorizes:
            return metadata, timeout
        return self.authorize(self.method, credentials, metadata, timeout)


class UnaryUnaryMultiCallable(_native.BlockingUnaryUnary, _interfaces.UnaryUnaryMultiCallable):
    """A method with one request and one response. Calling it is native."""

    def __new__(cls, channel, method, serializer, deserializer, authorize, always_authorizes):
        self = super().__new__(cls, channel, method, serializer, deserializer, authorize, always_authorizes)
        self._deserializer = deserializer
        self._authorization = _Authorization(method, authorize, always_authorizes)
        return self

    def future(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        completions = _threads.callbacks()
        try:
            metadata, timeout = self._authorization.apply(credentials, metadata, timeout)
        except _InactiveRpcError as error:
            call = _native.StreamCall.failed(completions, error.code().value[0], error.details())
        else:
            call = self.start(completions, request, timeout, metadata, wait_for_ready, compression)
        return _ResponseFuture(call, self._deserializer)


class _StreamMethod:
    """A method with a stream of requests, of responses, or both."""

    _HAS_ONE_RESPONSE = False

    def __init__(self, channel, method, serializer, deserializer, authorize, always_authorizes):
        self._serializer = serializer
        self._deserializer = deserializer
        self._authorization = _Authorization(method, authorize, always_authorizes)
        self._method = _native.StreamMethod(channel, method, deserializer, self._HAS_ONE_RESPONSE)

    def _start(self, timeout, metadata, credentials, wait_for_ready, compression) -> _native.StreamCall:
        completions = _threads.callbacks()
        try:
            metadata, timeout = self._authorization.apply(credentials, metadata, timeout)
            return self._method.start(completions, timeout, metadata, wait_for_ready, compression)
        except _InactiveRpcError as error:
            code, details = error.code(), error.details()
        except _native.InvalidMetadata as error:
            _, _, pair = str(error).partition(": ")
            code, details = StatusCode.INTERNAL, f"{_INVALID_METADATA}: {pair}"
        return _native.StreamCall.failed(completions, code.value[0], details)


class UnaryStreamMultiCallable(_StreamMethod, _interfaces.UnaryStreamMultiCallable):
    """A method with one request and a stream of responses."""

    def __call__(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        message = serialize(self._serializer, request)
        call = self._start(timeout, metadata, credentials, wait_for_ready, compression)
        responses = _MultiThreadedRendezvous(call)
        call.send_only(message)
        return responses


class StreamUnaryMultiCallable(_StreamMethod, _interfaces.StreamUnaryMultiCallable):
    """A method with a stream of requests and one response."""

    _HAS_ONE_RESPONSE = True

    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._finish(request_iterator, timeout, metadata, credentials, wait_for_ready, compression).result()

    def with_call(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        call = self._finish(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)
        return call.result(), call

    def future(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        call = self._start(timeout, metadata, credentials, wait_for_ready, compression)
        future = _ResponseFuture(call, self._deserializer)
        send_requests(call, request_iterator, self._serializer)
        return future

    def _finish(self, *arguments) -> _Rendezvous:
        """Makes a call and waits for its end.

        Raises:
            RpcError: It ended with another status than OK.
        """
        call = self.future(*arguments)
        try:
            code = call.code()
        except KeyboardInterrupt:
            call.cancel()
            raise
        if code is not StatusCode.OK:
            raise error_of(call)
        return call


class StreamStreamMultiCallable(_StreamMethod, _interfaces.StreamStreamMultiCallable):
    """A method with streams of requests and responses."""

    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        call = self._start(timeout, metadata, credentials, wait_for_ready, compression)
        responses = _MultiThreadedRendezvous(call)
        send_requests(call, request_iterator, self._serializer)
        return responses


class Channel(_interfaces.Channel):
    """A channel of the blocking interface."""

    def __init__(self, channel: _native.Channel, authorize: Authorize, always_authorizes: bool):
        """Wraps a native channel.

        Args:
            channel: The native channel.
            authorize: Adds the metadata of credentials to calls that have some, or raises an error.
            always_authorizes: Whether `authorize` is called for calls without credentials of their own, too.
        """
        self._channel = channel
        self._authorization = (authorize, always_authorizes)
        self._subscriptions = Subscriptions(channel)

    def subscribe(self, callback, try_to_connect=None):
        self._subscriptions.add(callback, bool(try_to_connect))

    def unsubscribe(self, callback):
        self._subscriptions.remove(callback)

    def unary_unary(
        self,
        method: str,
        request_serializer: Optional[Callable[[Any], bytes]] = None,
        response_deserializer: Optional[Callable[[bytes], Any]] = None,
        _registered_method: bool = False,
    ):
        return UnaryUnaryMultiCallable(
            self._channel, method, request_serializer, response_deserializer, *self._authorization
        )

    def unary_stream(
        self,
        method: str,
        request_serializer: Optional[Callable[[Any], bytes]] = None,
        response_deserializer: Optional[Callable[[bytes], Any]] = None,
        _registered_method: bool = False,
    ):
        return UnaryStreamMultiCallable(
            self._channel, method, request_serializer, response_deserializer, *self._authorization
        )

    def stream_unary(
        self,
        method: str,
        request_serializer: Optional[Callable[[Any], bytes]] = None,
        response_deserializer: Optional[Callable[[bytes], Any]] = None,
        _registered_method: bool = False,
    ):
        return StreamUnaryMultiCallable(
            self._channel, method, request_serializer, response_deserializer, *self._authorization
        )

    def stream_stream(
        self,
        method: str,
        request_serializer: Optional[Callable[[Any], bytes]] = None,
        response_deserializer: Optional[Callable[[bytes], Any]] = None,
        _registered_method: bool = False,
    ):
        return StreamStreamMultiCallable(
            self._channel, method, request_serializer, response_deserializer, *self._authorization
        )

    def close(self):
        self._subscriptions.close()
        self._channel.close(_CLOSED)

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
        return False

    def __del__(self):
        # Without the attribute, the constructor has failed. The native channel may still have calls.
        subscriptions = getattr(self, "_subscriptions", None)
        if subscriptions is not None:
            subscriptions.close()
