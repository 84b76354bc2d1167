"""The abstract classes of grpcio's blocking interface."""

import abc


class RpcContext(abc.ABC):
    """The interface that both sides of an RPC share."""

    @abc.abstractmethod
    def is_active(self):
        """Returns whether the RPC goes on."""
        raise NotImplementedError()

    @abc.abstractmethod
    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""
        raise NotImplementedError()

    @abc.abstractmethod
    def cancel(self):
        """Cancels the RPC. It has no effect once the RPC has ended."""
        raise NotImplementedError()

    @abc.abstractmethod
    def add_callback(self, callback):
        """Calls `callback` without arguments when the RPC ends. Returns False, and does not call it, if it
        has ended.
        """
        raise NotImplementedError()


class Call(RpcContext):
    """A client's view of an RPC."""

    @abc.abstractmethod
    def initial_metadata(self):
        """Waits for the server's initial metadata and returns it."""
        raise NotImplementedError()

    @abc.abstractmethod
    def trailing_metadata(self):
        """Waits for the end of the RPC and returns the server's trailing metadata."""
        raise NotImplementedError()

    @abc.abstractmethod
    def code(self):
        """Waits for the end of the RPC and returns its status code."""
        raise NotImplementedError()

    @abc.abstractmethod
    def details(self):
        """Waits for the end of the RPC and returns the text of its status."""
        raise NotImplementedError()


class Future(abc.ABC):
    """The result of a computation that may still run."""

    @abc.abstractmethod
    def cancel(self):
        """Tries to cancel it. Returns whether it was cancelled."""
        raise NotImplementedError()

    @abc.abstractmethod
    def cancelled(self):
        """Returns whether it was cancelled."""
        raise NotImplementedError()

    @abc.abstractmethod
    def running(self):
        """Returns whether it still runs."""
        raise NotImplementedError()

    @abc.abstractmethod
    def done(self):
        """Returns whether it has ended or was cancelled."""
        raise NotImplementedError()

    @abc.abstractmethod
    def result(self, timeout=None):
        """Waits at most `timeout` seconds and returns the result, or raises its exception,
        `FutureTimeoutError` or `FutureCancelledError`.
        """
        raise NotImplementedError()

    @abc.abstractmethod
    def exception(self, timeout=None):
        """Waits at most `timeout` seconds and returns its exception, or None."""
        raise NotImplementedError()

    @abc.abstractmethod
    def traceback(self, timeout=None):
        """Waits at most `timeout` seconds and returns the traceback of its exception, or None."""
        raise NotImplementedError()

    @abc.abstractmethod
    def add_done_callback(self, fn):
        """Calls `fn` with this future when it is done."""
        raise NotImplementedError()


class UnaryUnaryMultiCallable(abc.ABC):
    """A method with one request and one response."""

    @abc.abstractmethod
    def __call__(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        """Calls the method and returns the response, or raises `RpcError`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def with_call(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        """Same as calling, but returns the response and the `Call`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def future(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        """Calls the method and returns an object that is a `Call` and a `Future`."""
        raise NotImplementedError()


class UnaryStreamMultiCallable(abc.ABC):
    """A method with one request and a stream of responses."""

    @abc.abstractmethod
    def __call__(self, request, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None):
        """Calls the method and returns an iterator of the responses that is a `Call`."""
        raise NotImplementedError()


class StreamUnaryMultiCallable(abc.ABC):
    """A method with a stream of requests and one response."""

    @abc.abstractmethod
    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Calls the method and returns the response, or raises `RpcError`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def with_call(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Same as calling, but returns the response and the `Call`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def future(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Calls the method and returns an object that is a `Call` and a `Future`."""
        raise NotImplementedError()


class StreamStreamMultiCallable(abc.ABC):
    """A method with streams of requests and responses."""

    @abc.abstractmethod
    def __call__(
        self, request_iterator, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Calls the method and returns an iterator of the responses that is a `Call`."""
        raise NotImplementedError()


class Channel(abc.ABC):
    """A connection to a target, possibly over several sockets and servers."""

    @abc.abstractmethod
    def subscribe(self, callback, try_to_connect=False):
        """Calls `callback` with the connectivity of the channel, now and when it changes."""
        raise NotImplementedError()

    @abc.abstractmethod
    def unsubscribe(self, callback):
        """Ends a subscription."""
        raise NotImplementedError()

    @abc.abstractmethod
    def unary_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns a callable for the method at the path `method`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def unary_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns a callable for the method at the path `method`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def stream_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns a callable for the method at the path `method`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def stream_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns a callable for the method at the path `method`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def close(self):
        """Cancels all calls and closes the channel."""
        raise NotImplementedError()


class UnaryUnaryClientInterceptor(abc.ABC):
    """Code around a client's calls with one request and one response."""

    @abc.abstractmethod
    def intercept_unary_unary(self, continuation, client_call_details, request):
        """Calls `continuation(client_call_details, request)` and returns its result, or an object that is a
        `Call` and a `Future`.
        """
        raise NotImplementedError()


class UnaryStreamClientInterceptor(abc.ABC):
    """Code around a client's calls with a stream of responses."""

    @abc.abstractmethod
    def intercept_unary_stream(self, continuation, client_call_details, request):
        """Calls `continuation(client_call_details, request)` and returns its result, or an iterator of
        responses that is a `Call`.
        """
        raise NotImplementedError()


class StreamUnaryClientInterceptor(abc.ABC):
    """Code around a client's calls with a stream of requests."""

    @abc.abstractmethod
    def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
        """Calls `continuation(client_call_details, request_iterator)` and returns its result, or an object
        that is a `Call` and a `Future`.
        """
        raise NotImplementedError()


class StreamStreamClientInterceptor(abc.ABC):
    """Code around a client's calls with streams in both directions."""

    @abc.abstractmethod
    def intercept_stream_stream(self, continuation, client_call_details, request_iterator):
        """Calls `continuation(client_call_details, request_iterator)` and returns its result, or an
        iterator of responses that is a `Call`.
        """
        raise NotImplementedError()


class ServicerContext(RpcContext):
    """A handler's view of an RPC."""

    @abc.abstractmethod
    def invocation_metadata(self):
        """Returns the client's metadata."""
        raise NotImplementedError()

    @abc.abstractmethod
    def peer(self):
        """Returns the client's address as text."""
        raise NotImplementedError()

    @abc.abstractmethod
    def peer_identities(self):
        """Returns the client's identities as a list of bytes, or None if it is not authenticated."""
        raise NotImplementedError()

    @abc.abstractmethod
    def peer_identity_key(self):
        """Returns the name of the property of the identities, or None."""
        raise NotImplementedError()

    @abc.abstractmethod
    def auth_context(self):
        """Returns the properties of the connection's authentication, each a list of bytes."""
        raise NotImplementedError()

    def set_compression(self, compression):
        """Sets the compression of all responses."""
        raise NotImplementedError()

    @abc.abstractmethod
    def send_initial_metadata(self, initial_metadata):
        """Sends the initial metadata, at most once and before the first response."""
        raise NotImplementedError()

    @abc.abstractmethod
    def set_trailing_metadata(self, trailing_metadata):
        """Sets the metadata to send at the end."""
        raise NotImplementedError()

    def trailing_metadata(self):
        """Returns the metadata to send at the end."""
        raise NotImplementedError()

    @abc.abstractmethod
    def abort(self, code, details):
        """Raises an exception that ends the RPC with this status."""
        raise NotImplementedError()

    @abc.abstractmethod
    def abort_with_status(self, status):
        """Raises an exception that ends the RPC with this `Status`."""
        raise NotImplementedError()

    @abc.abstractmethod
    def set_code(self, code):
        """Sets the code that the RPC ends with."""
        raise NotImplementedError()

    @abc.abstractmethod
    def set_details(self, details):
        """Sets the text that the RPC ends with."""
        raise NotImplementedError()

    def code(self):
        """Returns the code that the RPC ends with."""
        raise NotImplementedError()

    def details(self):
        """Returns the text that the RPC ends with."""
        raise NotImplementedError()

    def disable_next_message_compression(self):
        """Sends the next response uncompressed."""
        raise NotImplementedError()


class GenericRpcHandler(abc.ABC):
    """Finds the handlers of methods."""

    @abc.abstractmethod
    def service(self, handler_call_details):
        """Returns the `RpcMethodHandler` of a call, or None."""
        raise NotImplementedError()


class ServiceRpcHandler(GenericRpcHandler):
    """Finds the handlers of one service."""

    @abc.abstractmethod
    def service_name(self):
        """Returns the name of the service."""
        raise NotImplementedError()


class ServerInterceptor(abc.ABC):
    """Code around the lookup of a call's handler."""

    @abc.abstractmethod
    def intercept_service(self, continuation, handler_call_details):
        """Returns the handler of a call, usually that of `continuation(handler_call_details)`."""
        raise NotImplementedError()


class Server(abc.ABC):
    """A server."""

    @abc.abstractmethod
    def add_generic_rpc_handlers(self, generic_rpc_handlers):
        """Adds handlers, before the start."""
        raise NotImplementedError()

    def add_registered_method_handlers(self, service_name, method_handlers):
        """Adds handlers of methods by name, before the start."""
        raise NotImplementedError()

    @abc.abstractmethod
    def add_insecure_port(self, address):
        """Listens on `address` without TLS and returns the port."""
        raise NotImplementedError()

    @abc.abstractmethod
    def add_secure_port(self, address, server_credentials):
        """Listens on `address` with TLS and returns the port."""
        raise NotImplementedError()

    @abc.abstractmethod
    def start(self):
        """Starts to accept calls. A server starts once."""
        raise NotImplementedError()

    @abc.abstractmethod
    def stop(self, grace):
        """Accepts no more calls, and cancels those that go on after `grace` seconds (None: at once).
        Returns a `threading.Event` that is set when the server has stopped. A later call may shorten the
        time.
        """
        raise NotImplementedError()

    def wait_for_termination(self, timeout=None):
        """Blocks until the server has stopped, at most `timeout` seconds. Returns whether the time passed first."""
        raise NotImplementedError()
