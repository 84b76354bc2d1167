"""Calls without a channel: the channels are kept for further calls to the same target."""

import collections
import threading
import time
from typing import Any, Callable, Iterator, Optional, Sequence

from thalweg.grpc._credentials import CallCredentials, ChannelCredentials, insecure_channel_credentials

#: Seconds without a call after which a channel is dropped.
_IDLE_S_MAX = 600.0
#: Number of channels that are kept.
_CHANNELS_MAX = 256


class _Channels:
    """Channels by their targets and settings. A dropped channel closes when its last call has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: collections.OrderedDict[Any, tuple[Any, float]] = collections.OrderedDict()

    def get(self, target: str, options: Any, credentials: ChannelCredentials, compression: Any) -> Any:
        """Returns the channel, which it creates if there is none."""
        from thalweg import grpc

        key, now = (target, tuple(options), credentials, compression), time.monotonic()
        with self._lock:
            channel, _ = self._channels.pop(key, (None, 0.0))
            if channel is None:
                channel = grpc.secure_channel(target, credentials, options, compression)
            self._channels[key] = (channel, now)
            dropped = []
            for old, (_, used_at) in list(self._channels.items()):
                if len(self._channels) <= _CHANNELS_MAX and now - used_at < _IDLE_S_MAX:
                    break
                dropped.append(self._channels.pop(old))
        return channel


_channels = _Channels()


def _method(
    kind: str,
    target: str,
    method: str,
    request_serializer: Any,
    response_deserializer: Any,
    options: Any,
    channel_credentials: Any,
    insecure: bool,
    compression: Any,
) -> Any:
    if insecure:
        if channel_credentials not in (None, insecure_channel_credentials()):
            raise ValueError("channel_credentials were given with insecure=True; give one of them")
        channel_credentials = insecure_channel_credentials()
    elif channel_credentials is None:
        from thalweg.grpc._credentials import ssl_channel_credentials

        channel_credentials = _default_credentials or _set_default(ssl_channel_credentials())
    channel = _channels.get(target, options, channel_credentials, compression)
    return getattr(channel, kind)(method, request_serializer, response_deserializer)


#: Made once, since credentials are part of a channel's key.
_default_credentials: Optional[ChannelCredentials] = None


def _set_default(credentials: ChannelCredentials) -> ChannelCredentials:
    global _default_credentials
    _default_credentials = credentials
    return credentials


def _function(kind: str, returns: str) -> Callable[..., Any]:
    def call(
        request: Any,
        target: str,
        method: str,
        request_serializer: Optional[Callable[[Any], bytes]] = None,
        response_deserializer: Optional[Callable[[bytes], Any]] = None,
        options: Sequence[tuple[str, Any]] = (),
        channel_credentials: Optional[ChannelCredentials] = None,
        insecure: bool = False,
        call_credentials: Optional[CallCredentials] = None,
        compression: Any = None,
        wait_for_ready: Optional[bool] = None,
        timeout: Optional[float] = 60.0,
        metadata: Any = None,
        _registered_method: Optional[bool] = False,
    ) -> Any:
        callable_ = _method(
            kind, target, method, request_serializer, response_deserializer, options, channel_credentials, insecure,
            compression,
        )  # fmt: skip
        wait = True if wait_for_ready is None else wait_for_ready
        return callable_(request, timeout, metadata, call_credentials, wait, compression)

    call.__name__ = call.__qualname__ = kind
    call.__doc__ = f"""Calls a method without a channel, which is kept for further calls, and returns {returns}.

    Args:
        request: The request; `request_iterator`, an iterator of them, if they are a stream.
        target: The server.
        method: Path of the method, `/package.Service/Method`.
        request_serializer: Turns a request into bytes; None for bytes.
        response_deserializer: Turns bytes into a response; None for bytes.
        options: Options of the channel.
        channel_credentials: By default those of `ssl_channel_credentials()`.
        insecure: Whether the channel is insecure.
        call_credentials: Credentials of the call.
        compression: Compression of the call and the channel.
        wait_for_ready: Whether the call waits for the server; true by default.
        timeout: Seconds; a minute by default, None for no limit.
        metadata: Metadata of the call.

    Raises:
        ValueError: `channel_credentials` are given for an insecure call.
    """
    return call


def _streaming(kind: str, returns: str) -> Callable[..., Any]:
    function = _function(kind, returns)

    def call(request_iterator: Iterator[Any], target: str, method: str, *arguments: Any, **keywords: Any) -> Any:
        return function(request_iterator, target, method, *arguments, **keywords)

    call.__name__ = call.__qualname__ = kind
    call.__doc__ = function.__doc__
    return call


unary_unary = _function("unary_unary", "the response")
unary_stream = _function("unary_stream", "an iterator of the responses")
stream_unary = _streaming("stream_unary", "the response")
stream_stream = _streaming("stream_stream", "an iterator of the responses")
