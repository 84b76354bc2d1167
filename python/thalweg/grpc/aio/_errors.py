"""Exceptions of `grpc.aio`."""

import asyncio

from thalweg.grpc._types import RpcError


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

    def __str__(self):
        return (
            f"<{type(self).__name__} of RPC that terminated with:\n"
            f"\tstatus = {self._code}\n"
            f'\tdetails = "{self._details}"\n'
            f'\tdebug_error_string = "{self._debug_error_string}"\n'
            ">"
        )

    __repr__ = __str__


class BaseError(Exception):
    """An error of a server."""


class UsageError(BaseError):
    """A method was called in a state that does not permit it."""


class AbortError(BaseError):
    """Ends a handler that has called `abort`."""


class InternalError(BaseError):
    """A failure of the library."""


def error_of(is_cancelled, code, initial_metadata, trailing_metadata, details):
    """Returns the exception that awaiting an ended call raises."""
    if is_cancelled:
        return asyncio.CancelledError(details)
    return AioRpcError(code, initial_metadata, trailing_metadata, details, f"{code.name}: {details}")
