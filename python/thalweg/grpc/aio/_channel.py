"""Channels of `grpc.aio`."""

import asyncio
import functools
import time
import weakref
from collections.abc import Sequence
from typing import Any, Optional

from thalweg import _native
from thalweg.grpc import _credentials, _options
from thalweg.grpc._types import ChannelConnectivity
from thalweg.grpc.aio import _base
from thalweg.grpc.aio._call import StreamStreamCall, StreamUnaryCall, UnaryStreamCall
from thalweg.grpc.aio._errors import CANCELLED, AioRpcError, UsageError, debug_text
from thalweg.grpc.aio._interceptor import INTERCEPTED, KINDS, ClientCallDetails
from thalweg.grpc.aio._loops import completions_of
from thalweg.grpc.aio._metadata import Metadata

#: Options of channels and servers: pairs of names and values.
ChannelArgumentType = Sequence[tuple[str, Any]]

_CLOSED = "Channel is closed."
_INSECURE = "Call credentials are only valid on secure channels"

_STATES = sorted(ChannelConnectivity, key=lambda state: state.value[0])


def insecure_channel(target, options=None, compression=None, interceptors=None):
    """Returns a channel to `target` without encryption. It may be created outside of an event loop, and used in any.

    Args:
        target: The server's address: a gRPC target URI, or a host and port.
        options: Pairs of names and values of channel options.
        compression: A `Compression` of the requests of all calls that set none of their own.
        interceptors: Interceptors of calls, the outermost first. Each is used for all kinds of calls that it is for.

    Raises:
        ValueError: The target, an option or an interceptor is invalid.
    """
    return Channel(target, options, None, compression, interceptors)


def secure_channel(target, credentials, options=None, compression=None, interceptors=None):
    """Returns a channel to `target` with `ChannelCredentials`. Other arguments are those of `insecure_channel`."""
    _credentials.native_channel_credentials(credentials)
    return Channel(target, options, credentials, compression, interceptors)


class Channel(_base.Channel):
    """A channel of `insecure_channel` or `secure_channel`."""

    def __init__(self, target, options, credentials, compression, interceptors):
        settings = _options.channel_settings(options, compression)
        native = None if credentials is None else _credentials.native_channel_credentials(credentials)
        self._native = _native.Channel(target, settings, native)
        self._credentials = credentials
        self._authority = _credentials.authority_of(target, settings)
        # Secure channels may have call credentials of their own.
        self._always_authorizes = (
            credentials is not None and _credentials.call_credentials_of(credentials, None) is not None
        )
        self._unary_unary_interceptors = []
        self._unary_stream_interceptors = []
        self._stream_unary_interceptors = []
        self._stream_stream_interceptors = []
        for interceptor in interceptors or ():
            self._add_interceptor(interceptor)
        # Calls that may not have reached the native channel.
        self._intercepted = weakref.WeakSet()
        self._is_closed = False

    def _add_interceptor(self, interceptor):
        kinds = [kind for kind, interface in KINDS.items() if isinstance(interceptor, interface)]
        if not kinds:
            names = " or ".join(interface.__name__ for interface in KINDS.values())
            raise ValueError(f"Interceptor {interceptor!r} must be {names}")
        for kind in kinds:
            self._interceptors(kind).append(interceptor)

    def _interceptors(self, kind):
        return getattr(self, f"_{kind}_interceptors")

    async def __aenter__(self):
        return self

    async def __aexit__(self, exc_type, exc_val, exc_tb):
        await self.close()

    async def close(self, grace: Optional[float] = None):
        """Closes the channel. RPCs that go on after `grace` seconds (None: at once) are cancelled."""
        if self._is_closed:
            return
        self._is_closed = True
        self._native.refuse_calls()
        try:
            if grace:
                await self._wait_for_calls(grace)
        finally:
            for call in list(self._intercepted):
                call.cancel()
            self._native.close(CANCELLED)

    async def _wait_for_calls(self, grace):
        loop = asyncio.get_running_loop()
        idle = loop.create_future()
        self._native.on_idle(completions_of(loop), _set, idle)
        # An interceptor may go on after its call.
        interceptors = [call._task for call in list(self._intercepted) if not call.done()]
        await asyncio.wait([idle, *interceptors], timeout=grace)

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """Returns the connectivity. With `try_to_connect`, an idle channel starts to connect."""
        return _STATES[self._native.state(try_to_connect)]

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """Waits until the connectivity differs from `last_observed_state`.

        Raises:
            UsageError: The channel is closed.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        changed = loop.create_future()
        notify = functools.partial(_set_result, changed)
        key = self._native.on_state_change(completions_of(loop), last_observed_state.value[0], notify)
        try:
            await changed
        finally:
            if key is not None:
                self._native.forget_state_change(key)

    async def channel_ready(self) -> None:
        """Connects, and waits until the channel is ready.

        Raises:
            UsageError: The channel is closed.
        """
        while True:
            state = self.get_state(try_to_connect=True)
            if state is ChannelConnectivity.READY:
                return
            await self.wait_for_state_change(state)

    def _check_open(self):
        if self._is_closed:
            raise UsageError(_CLOSED)

    # Generated code registers its methods; that changes nothing here.

    def unary_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `UnaryUnaryMultiCallable` of the method at the path `method`."""
        method = _UnaryUnary(self, method, request_serializer, response_deserializer)
        if self._unary_unary_interceptors or self._always_authorizes:
            return UnaryUnaryMultiCallable(self, method)
        return method.native

    def unary_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `UnaryStreamMultiCallable` of the method at the path `method`."""
        return UnaryStreamMultiCallable(self, _UnaryStream(self, method, request_serializer, response_deserializer))

    def stream_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `StreamUnaryMultiCallable` of the method at the path `method`."""
        return StreamUnaryMultiCallable(self, _StreamUnary(self, method, request_serializer, response_deserializer))

    def stream_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `StreamStreamMultiCallable` of the method at the path `method`."""
        return StreamStreamMultiCallable(self, _StreamStream(self, method, request_serializer, response_deserializer))


def _set(future):
    _set_result(future, None)


def _set_result(future, result):
    if not future.done():
        future.set_result(result)


class _Method:
    """A method with its serializers, whose calls are started without interceptors."""

    kind: str

    def __init__(self, channel, path, serializer, deserializer):
        self.channel = channel
        self.path = path.decode() if isinstance(path, bytes) else path
        self.serializer = serializer
        self.deserializer = deserializer

    def at(self, path):
        """Returns the method at another path, for interceptors that change it."""
        path = path.decode() if isinstance(path, bytes) else path
        if path == self.path:
            return self
        return type(self)(self.channel, path, self.serializer, self.deserializer)

    def start(self, request, timeout, metadata, wait_for_ready, compression):
        """Starts a call."""
        raise NotImplementedError()


class _UnaryUnary(_Method):
    kind = "unary_unary"

    def __init__(self, channel, path, serializer, deserializer):
        super().__init__(channel, path, serializer, deserializer)
        # Only calls with credentials of their own come back to Python.
        authorized = UnaryUnaryMultiCallable(channel, self)
        self.native = _native.UnaryUnaryMultiCallable(
            channel._native, self.path, serializer, deserializer, authorized
        )

    def start(self, request, timeout, metadata, wait_for_ready, compression):
        return self.native(
            request, timeout=timeout, metadata=metadata, wait_for_ready=wait_for_ready, compression=compression
        )


class _UnaryStream(_Method):
    kind = "unary_stream"

    def __init__(self, channel, path, serializer, deserializer):
        super().__init__(channel, path, serializer, deserializer)
        self._native = _native.StreamMethod(channel._native, self.path, deserializer)

    def start(self, request, timeout, metadata, wait_for_ready, compression):
        message = request if self.serializer is None else self.serializer(request)
        native = self._native.start(None, timeout, metadata, wait_for_ready, compression)
        return UnaryStreamCall(native, asyncio.get_running_loop(), message)


class _StreamUnary(_Method):
    kind = "stream_unary"

    def __init__(self, channel, path, serializer, deserializer):
        super().__init__(channel, path, serializer, deserializer)
        self._native = _native.StreamMethod(channel._native, self.path, deserializer, has_one_response=True)

    def start(self, request, timeout, metadata, wait_for_ready, compression):
        native = self._native.start(None, timeout, metadata, wait_for_ready, compression)
        return StreamUnaryCall(native, asyncio.get_running_loop(), request, self.serializer)


class _StreamStream(_Method):
    kind = "stream_stream"

    def __init__(self, channel, path, serializer, deserializer):
        super().__init__(channel, path, serializer, deserializer)
        self._native = _native.StreamMethod(channel._native, self.path, deserializer)

    def start(self, request, timeout, metadata, wait_for_ready, compression):
        native = self._native.start(None, timeout, metadata, wait_for_ready, compression)
        return StreamStreamCall(native, asyncio.get_running_loop(), request, self.serializer)


class _MultiCallable:
    """A method of a channel, with interceptors and credentials."""

    def __init__(self, channel, method):
        self._channel = channel
        self._method = method
        self._interceptors = channel._interceptors(method.kind)

    def _call(self, request, timeout, metadata, credentials, wait_for_ready, compression):
        channel = self._channel
        if credentials is None and not self._interceptors and not channel._always_authorizes:
            return self._method.start(request, timeout, metadata, wait_for_ready, compression)
        channel._check_open()
        if credentials is not None and channel._credentials is None:
            raise UsageError(_INSECURE)
        path, metadata = self._method.path.encode(), Metadata._create(metadata)
        details = ClientCallDetails(path, timeout, metadata, credentials, wait_for_ready)
        start = functools.partial(self._start, compression)
        intercepted = INTERCEPTED[self._method.kind]
        call = intercepted(self._interceptors, start, details, request, asyncio.get_running_loop())
        channel._intercepted.add(call)
        return call

    async def _start(self, compression, details, request):
        """Starts a call after its interceptors."""
        metadata, timeout = await self._authorized(details)
        method = self._method.at(details.method)
        return method.start(request, timeout, metadata, details.wait_for_ready, compression)

    async def _authorized(self, details):
        """Returns the metadata of a call with that of its credentials and the channel's, and the time left."""
        channel, timeout = self._channel, details.timeout
        if details.credentials is None and not channel._always_authorizes:
            return details.metadata, timeout
        started = time.monotonic()
        try:
            credentials = _credentials.call_credentials_of(channel._credentials, details.credentials)
            context = _credentials.context_of(channel._credentials, channel._authority, details.method)
            added = await _credentials.metadata_of_async(credentials, context, timeout)
        except _credentials.CredentialsError as error:
            debug = debug_text(error.code, error.details)
            raise AioRpcError(error.code, Metadata(), Metadata(), error.details, debug) from None
        left = None if timeout is None else timeout - (time.monotonic() - started)
        return [*(details.metadata or ()), *added], left


class _OfRequest(_MultiCallable):
    """A method with one request."""

    def __call__(
        self, request, *, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        return self._call(request, timeout, metadata, credentials, wait_for_ready, compression)


class _OfRequests(_MultiCallable):
    """A method with a stream of requests."""

    def __call__(
        self,
        request_iterator=None,
        timeout=None,
        metadata=None,
        credentials=None,
        wait_for_ready=None,
        compression=None,
    ):
        return self._call(request_iterator, timeout, metadata, credentials, wait_for_ready, compression)


class UnaryUnaryMultiCallable(_OfRequest, _base.UnaryUnaryMultiCallable):
    """A method with one request and one response."""


class UnaryStreamMultiCallable(_OfRequest, _base.UnaryStreamMultiCallable):
    """A method with one request and a stream of responses."""


class StreamUnaryMultiCallable(_OfRequests, _base.StreamUnaryMultiCallable):
    """A method with a stream of requests and one response."""


class StreamStreamMultiCallable(_OfRequests, _base.StreamStreamMultiCallable):
    """A method with streams in both directions."""
