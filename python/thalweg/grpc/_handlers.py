"""Handlers of methods, and their lookup."""

from typing import Any, Callable, NamedTuple, Optional

from thalweg.grpc._interfaces import GenericRpcHandler, ServiceRpcHandler


class RpcMethodHandler(NamedTuple):
    """A method of a server: which of its directions are streams, its serializers, and its function.

    The function is in the attribute that names the call type; the other three are None.
    """

    request_streaming: bool
    response_streaming: bool
    request_deserializer: Optional[Callable[[bytes], Any]] = None
    response_serializer: Optional[Callable[[Any], bytes]] = None
    unary_unary: Optional[Callable[..., Any]] = None
    unary_stream: Optional[Callable[..., Any]] = None
    stream_unary: Optional[Callable[..., Any]] = None
    stream_stream: Optional[Callable[..., Any]] = None


def unary_unary_rpc_method_handler(behavior, request_deserializer=None, response_serializer=None):
    """Returns the handler of a method with one request and one response."""
    return RpcMethodHandler(False, False, request_deserializer, response_serializer, unary_unary=behavior)


def unary_stream_rpc_method_handler(behavior, request_deserializer=None, response_serializer=None):
    """Returns the handler of a method with one request and a stream of responses."""
    return RpcMethodHandler(False, True, request_deserializer, response_serializer, unary_stream=behavior)


def stream_unary_rpc_method_handler(behavior, request_deserializer=None, response_serializer=None):
    """Returns the handler of a method with a stream of requests and one response."""
    return RpcMethodHandler(True, False, request_deserializer, response_serializer, stream_unary=behavior)


def stream_stream_rpc_method_handler(behavior, request_deserializer=None, response_serializer=None):
    """Returns the handler of a method with streams of requests and responses."""
    return RpcMethodHandler(True, True, request_deserializer, response_serializer, stream_stream=behavior)


class _Service(ServiceRpcHandler):
    def __init__(self, service, method_handlers):
        self._name = service
        self._handlers = {f"/{service}/{method}": handler for method, handler in method_handlers.items()}

    def service_name(self):
        return self._name

    def service(self, handler_call_details):
        return self._handlers.get(handler_call_details.method)


def method_handlers_generic_handler(service, method_handlers) -> GenericRpcHandler:
    """Returns the lookup of a service's handlers, given by the names of the methods."""
    return _Service(service, method_handlers)
