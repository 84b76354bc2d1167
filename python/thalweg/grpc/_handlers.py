"""Handlers of methods, and their lookup."""

import collections
from typing import Any, Callable, NamedTuple, Optional

from thalweg.grpc._interfaces import GenericRpcHandler, ServiceRpcHandler
from thalweg.grpc._types import HandlerCallDetails


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


class CallDetails(
    collections.namedtuple("HandlerCallDetails", ("method", "invocation_metadata")),
    HandlerCallDetails,
):
    """A call as interceptors and the lookup of its handler see it."""


class Handlers:
    """The handlers of a server. Registered ones come first, then generic ones in the order in which they were added."""

    def __init__(self, generic_handlers):
        self._registered = {}
        self._generic = []
        self.add_generic(generic_handlers)

    def add_generic(self, generic_handlers):
        """Adds objects with the method `service`.

        Raises:
            AttributeError: One has no such method.
        """
        generic_handlers = list(generic_handlers)
        for handler in generic_handlers:
            if getattr(handler, "service", None) is None:
                raise AttributeError(f'generic handler "{handler}" has no method "service"; see grpc.GenericRpcHandler')
        self._generic += generic_handlers

    def add_registered(self, service_name, method_handlers):
        """Adds handlers of a service by the names of its methods."""
        for method, handler in method_handlers.items():
            self._registered[f"/{service_name}/{method}"] = handler

    def find(self, details):
        """Returns the handler of a call, or None."""
        return self.find_static(details)[0]

    def find_static(self, details):
        """Returns the handler of a call, or None, and whether all calls of the method have the same."""
        handler = self._registered.get(details.method)
        if handler is not None:
            return handler, True
        is_static = True
        for generic in self._generic:
            # Other classes may decide by the metadata.
            is_static = is_static and type(generic) is _Service
            handler = generic.service(details)
            if handler is not None:
                return handler, is_static
        return None, False


class Method:
    """A handler, ready to be called.

    Attributes:
        function: The handler's function.
        deserialize: The deserializer of requests, or None.
        serialize: The serializer of responses, or None.
        takes_stream: Whether the requests are a stream.
        sends_stream: Whether the responses are a stream.
        is_non_blocking: Whether a handler with a stream of responses sends them by a function that it gets.
        ends_at_none: Whether None among the responses ends their stream. False by default; grpcio's blocking server
            does so, its asyncio server does not.
        run: Runs the handler; the meaning is the server's.
    """

    __slots__ = (
        "function",
        "deserialize",
        "serialize",
        "takes_stream",
        "sends_stream",
        "is_non_blocking",
        "ends_at_none",
        "run",
    )

    def __init__(self, handler):
        self.takes_stream = bool(handler.request_streaming)
        self.sends_stream = bool(handler.response_streaming)
        kind = f"{'stream' if self.takes_stream else 'unary'}_{'stream' if self.sends_stream else 'unary'}"
        self.function = getattr(handler, kind)
        self.deserialize = handler.request_deserializer
        self.serialize = handler.response_serializer
        # grpcio's health service uses it.
        self.is_non_blocking = self.sends_stream and getattr(self.function, "experimental_non_blocking", False)
        self.ends_at_none = False
        self.run = None
