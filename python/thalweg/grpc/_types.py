"""Enumerations, exceptions and small values of grpcio's interface."""

import abc
import enum


class ChannelConnectivity(enum.Enum):
    """States of a channel's connections."""

    IDLE = (0, "idle")
    CONNECTING = (1, "connecting")
    READY = (2, "ready")
    TRANSIENT_FAILURE = (3, "transient failure")
    SHUTDOWN = (4, "shutdown")


class Compression(enum.IntEnum):
    """Compression of messages."""

    NoCompression = 0
    Deflate = 1
    Gzip = 2


class LocalConnectionType(enum.Enum):
    """Kinds of connections within a machine."""

    UDS = 0
    LOCAL_TCP = 1


class RpcError(Exception):
    """An RPC that ended with a status other than OK. The raised object is also a `Call`."""


class FutureTimeoutError(Exception):
    """A future was not done in time."""


class FutureCancelledError(Exception):
    """A future was cancelled."""


class Status(abc.ABC):
    """A status for `abort_with_status`: has the attributes `code`, `details` and `trailing_metadata`."""


class ClientCallDetails(abc.ABC):
    """A call as its interceptors see it.

    Has the attributes `method`, `timeout`, `metadata`, `credentials`, `wait_for_ready` and `compression`.
    """


class HandlerCallDetails(abc.ABC):
    """A call as the lookup of its handler sees it: has the attributes `method` and `invocation_metadata`."""
