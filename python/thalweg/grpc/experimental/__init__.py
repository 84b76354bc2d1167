"""grpcio's experimental interface, `grpc.experimental`."""

from typing import Any, Callable

from thalweg.grpc._credentials import ChannelCredentials, insecure_channel_credentials
from thalweg.grpc.experimental._calls import stream_stream, stream_unary, unary_stream, unary_unary

__all__ = (
    "ChannelOptions",
    "ExperimentalApiWarning",
    "UsageError",
    "insecure_channel_credentials",
    "ssl_channel_credentials_with_custom_signer",
    "stream_stream",
    "stream_unary",
    "unary_stream",
    "unary_unary",
    "wrap_server_method_handler",
)


class ChannelOptions:
    """Options of channels that only Python has."""

    #: Has no effect: no stream has a thread of its own.
    SingleThreadedUnaryStream = "SingleThreadedUnaryStream"


class UsageError(Exception):
    """A use of the interface that it does not allow."""


class ExperimentalApiWarning(Warning):
    """A warning about an experimental function. This package issues none."""


def wrap_server_method_handler(wrapper: Callable[[Any], Any], handler: Any) -> Any:
    """Returns a `RpcMethodHandler` with its function replaced by `wrapper(function)`; None for None."""
    if handler is None:
        return None
    request = "stream" if handler.request_streaming else "unary"
    response = "stream" if handler.response_streaming else "unary"
    name = f"{request}_{response}"
    return handler._replace(**{name: wrapper(getattr(handler, name))})


def ssl_channel_credentials_with_custom_signer(
    *, private_key_sign_fn: Any, root_certificates: Any = None, certificate_chain: bytes
) -> ChannelCredentials:
    """Raises `NotImplementedError`: keys outside of the process are not supported."""
    raise NotImplementedError(
        "signing by a function is not supported; give the private key to grpc.ssl_channel_credentials"
    )
