"""Exceptions of `grpc.aio`."""

import asyncio

from thalweg.grpc._types import RpcError
from thalweg.grpc.aio._metadata import Metadata

#: Text of calls that this side has cancelled.
CANCELLED = "Locally cancelled by application!"
#: Text of calls that were dropped while responses were to come.
COLLECTED = "Cancelled upon garbage collection!"

_STYLES = "The iterator and read/write APIs may not be mixed on a single RPC."
_FINISHED = "RPC already finished."
_HALF_CLOSED = 'RPC is half closed after calling "done_writing".'


class BaseError(Exception):
    """Base of the errors of this module that are not statuses."""


class UsageError(BaseError):
    """A function was used in a way that its documentation rules out."""


class AbortError(BaseError):
    """Raised by `ServicerContext.abort` to leave a handler."""


class InternalError(BaseError):
    """A fault of this package."""


class AioRpcError(RpcError):
    """An RPC that ended with a status other than OK."""

    def __init__(self, code, initial_metadata=None, trailing_metadata=None, details=None, debug_error_string=None):
        super().__init__()
        self._code = code
        self._details = details
        self._initial_metadata = initial_metadata
        self._trailing_metadata = trailing_metadata
        self._debug_error_string = debug_error_string

    def code(self):
        """Returns the status code."""
        return self._code

    def details(self):
        """Returns the text of the status."""
        return self._details

    def initial_metadata(self):
        """Returns the server's initial metadata."""
        return self._initial_metadata

    def trailing_metadata(self):
        """Returns the server's trailing metadata."""
        return self._trailing_metadata

    def debug_error_string(self):
        """Returns a text with all that is known about the failure."""
        return self._debug_error_string

    def __reduce__(self):
        state = (
            self._code,
            self._initial_metadata,
            self._trailing_metadata,
            self._details,
            self._debug_error_string,
        )
        return type(self), state

    def __repr__(self):
        return status_text(type(self).__name__, self._code, self._details, self._debug_error_string)

    __str__ = __repr__


def status_text(name, code, details, debug_error_string):
    """Returns the representation of a call or error with a status."""
    lines = [f"<{name} of RPC that terminated with:", f"\tstatus = {code}", f'\tdetails = "{details}"']
    if debug_error_string is not None:
        lines.append(f'\tdebug_error_string = "{debug_error_string}"')
    return "\n".join([*lines, ">"])


def debug_text(code, details):
    """Returns the debug error string of a status."""
    return "" if code.value[0] == 0 else f"{code.name}:{details}"


def error_of(is_cancelled, code, initial_metadata, trailing_metadata, details):
    """Returns the exception that awaiting an ended call raises."""
    if is_cancelled:
        return asyncio.CancelledError(details)
    initial, trailing = Metadata.from_tuple(initial_metadata), Metadata.from_tuple(trailing_metadata)
    return AioRpcError(code, initial, trailing, details, debug_text(code, details))


def mixed_styles():
    """Returns the error of a call that is both iterated and read, or both given an iterator and written to."""
    return UsageError(_STYLES)


def finished():
    """Returns the error of a message for a call that has ended."""
    return asyncio.InvalidStateError(_FINISHED)


def half_closed():
    """Returns the error of a message after the last one."""
    return asyncio.InvalidStateError(_HALF_CLOSED)
