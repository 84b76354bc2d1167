"""The abstract classes of the clients of `grpc.aio`."""

import abc
from typing import Generic, Optional, TypeVar

RequestType = TypeVar("RequestType")
ResponseType = TypeVar("ResponseType")


class RpcContext(metaclass=abc.ABCMeta):
    """Parts of an RPC that are the same for both of its sides."""

    @abc.abstractmethod
    def cancelled(self):
        """Returns whether the RPC was cancelled."""

    @abc.abstractmethod
    def done(self):
        """Returns whether the RPC has ended."""

    @abc.abstractmethod
    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""

    @abc.abstractmethod
    def cancel(self):
        """Cancels the RPC. Returns whether it did; it has no effect once the RPC has ended."""

    @abc.abstractmethod
    def add_done_callback(self, callback):
        """Calls `callback` with this object when the RPC has ended."""


class Call(RpcContext):
    """A client's view of an RPC."""

    @abc.abstractmethod
    async def initial_metadata(self):
        """Waits for the server's initial metadata and returns it."""

    @abc.abstractmethod
    async def trailing_metadata(self):
        """Waits for the end of the RPC and returns the server's trailing metadata."""

    @abc.abstractmethod
    async def code(self):
        """Waits for the end of the RPC and returns its status code."""

    @abc.abstractmethod
    async def details(self):
        """Waits for the end of the RPC and returns the text of its status."""

    @abc.abstractmethod
    async def wait_for_connection(self):
        """Waits until a connection has accepted the RPC.

        Raises:
            AioRpcError: The RPC has ended with a status other than OK.
        """


class UnaryUnaryCall(Generic[RequestType, ResponseType], Call):
    """An RPC with one request and one response. Awaiting it returns the response, or raises `AioRpcError`."""

    @abc.abstractmethod
    def __await__(self):
        """Waits for the response."""


class UnaryStreamCall(Generic[RequestType, ResponseType], Call):
    """An RPC with one request and a stream of responses, which are either iterated or read."""

    @abc.abstractmethod
    def __aiter__(self):
        """Returns an iterator of the responses."""

    @abc.abstractmethod
    async def read(self):
        """Waits for the next response and returns it, or `EOF` after the last one."""


class StreamUnaryCall(Generic[RequestType, ResponseType], Call):
    """An RPC with a stream of requests and one response. Awaiting it returns the response, or raises `AioRpcError`."""

    @abc.abstractmethod
    async def write(self, request):
        """Sends a request, unless the call has an iterator of requests. Waits for room to send more."""

    @abc.abstractmethod
    async def done_writing(self):
        """Ends the requests."""

    @abc.abstractmethod
    def __await__(self):
        """Waits for the response."""


class StreamStreamCall(Generic[RequestType, ResponseType], Call):
    """An RPC with streams in both directions."""

    @abc.abstractmethod
    def __aiter__(self):
        """Returns an iterator of the responses."""

    @abc.abstractmethod
    async def read(self):
        """Waits for the next response and returns it, or `EOF` after the last one."""

    @abc.abstractmethod
    async def write(self, request):
        """Sends a request, unless the call has an iterator of requests. Waits for room to send more."""

    @abc.abstractmethod
    async def done_writing(self):
        """Ends the requests."""


class UnaryUnaryMultiCallable(Generic[RequestType, ResponseType], abc.ABC):
    """A method with one request and one response."""

    @abc.abstractmethod
    def __call__(
        self, request, *, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Starts an RPC.

        Args:
            request: The request.
            timeout: Seconds until the RPC fails with DEADLINE_EXCEEDED; unlimited by default.
            metadata: Pairs of keys and values to send.
            credentials: `CallCredentials`; only for secure channels.
            wait_for_ready: Whether the RPC waits while the server cannot be reached, instead of failing.
            compression: Compression of the request; by default that of the channel.

        Returns:
            A `UnaryUnaryCall`.
        """


class UnaryStreamMultiCallable(Generic[RequestType, ResponseType], abc.ABC):
    """A method with one request and a stream of responses."""

    @abc.abstractmethod
    def __call__(
        self, request, *, timeout=None, metadata=None, credentials=None, wait_for_ready=None, compression=None
    ):
        """Starts an RPC and returns a `UnaryStreamCall`, with arguments as of `UnaryUnaryMultiCallable`."""


class StreamUnaryMultiCallable(Generic[RequestType, ResponseType], abc.ABC):
    """A method with a stream of requests and one response."""

    @abc.abstractmethod
    def __call__(
        self,
        request_iterator=None,
        timeout=None,
        metadata=None,
        credentials=None,
        wait_for_ready=None,
        compression=None,
    ):
        """Starts an RPC and returns a `StreamUnaryCall`.

        Other arguments are those of `UnaryUnaryMultiCallable`.

        Args:
            request_iterator: An iterable or asynchronous iterable of requests. By default they are written to the call.
        """


class StreamStreamMultiCallable(Generic[RequestType, ResponseType], abc.ABC):
    """A method with streams in both directions."""

    @abc.abstractmethod
    def __call__(
        self,
        request_iterator=None,
        timeout=None,
        metadata=None,
        credentials=None,
        wait_for_ready=None,
        compression=None,
    ):
        """Starts an RPC and returns a `StreamStreamCall`, with arguments as of `StreamUnaryMultiCallable`."""


class Channel(abc.ABC):
    """A connection to a target, possibly over several sockets and servers. As a context manager it closes itself."""

    @abc.abstractmethod
    async def __aenter__(self):
        """Returns the channel."""

    @abc.abstractmethod
    async def __aexit__(self, exc_type, exc_val, exc_tb):
        """Closes the channel, and cancels its RPCs."""

    @abc.abstractmethod
    async def close(self, grace: Optional[float] = None):
        """Closes the channel. RPCs that go on after `grace` seconds (None: at once) are cancelled."""

    @abc.abstractmethod
    def get_state(self, try_to_connect: bool = False):
        """Returns the `ChannelConnectivity`. With `try_to_connect`, an idle channel starts to connect."""

    @abc.abstractmethod
    async def wait_for_state_change(self, last_observed_state):
        """Waits until the connectivity differs from `last_observed_state`."""

    @abc.abstractmethod
    async def channel_ready(self):
        """Connects, and waits until the channel is ready."""

    @abc.abstractmethod
    def unary_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `UnaryUnaryMultiCallable` of the method at the path `method`."""

    @abc.abstractmethod
    def unary_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `UnaryStreamMultiCallable` of the method at the path `method`."""

    @abc.abstractmethod
    def stream_unary(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `StreamUnaryMultiCallable` of the method at the path `method`."""

    @abc.abstractmethod
    def stream_stream(self, method, request_serializer=None, response_deserializer=None, _registered_method=False):
        """Returns the `StreamStreamMultiCallable` of the method at the path `method`."""
