"""The context of a call for coroutine handlers, and how they run."""

import asyncio
import logging
from typing import Generic, TypeVar

from thalweg.grpc._servicer_context import finish, peer_identities, peer_identity_key, set_compression
from thalweg.grpc._status import StatusCode
from thalweg.grpc.aio._eof import EOF
from thalweg.grpc.aio._errors import AbortError, UsageError

_LOGGER = logging.getLogger("grpc.aio._server")

_RequestType = TypeVar("_RequestType")
_ResponseType = TypeVar("_ResponseType")

#: Messages after which a handler that never has to wait lets other tasks run.
_BURST_LEN = 128


class ServicerContext(Generic[_RequestType, _ResponseType]):
    """A handler's view of a call."""

    _code = None
    _details = ""
    _trailing_metadata = ()
    _is_aborted = False
    #: Messages read and written since the task has last yielded here.
    _burst = 0

    def __init__(self, call, method):
        self._call = call
        self._method = method

    async def read(self):
        """Returns the next request, or `EOF` after the last.

        Raises:
            AbortError: The call was aborted.
            asyncio.CancelledError: The client has cancelled the call, or its deadline has passed.
        """
        if self._is_aborted:
            raise AbortError("the call was aborted")
        message = self._call.take()
        if message is None:
            message = await self._call.receive()
            if message is None:
                if self._call.cancelled():
                    raise asyncio.CancelledError("the call was cancelled")
                return EOF
        else:
            self._burst += 1
            if self._burst == _BURST_LEN:
                await self._yield()
        deserialize = self._method.deserialize
        return message if deserialize is None else deserialize(message)

    async def write(self, message):
        """Sends a response and waits for room for another.

        Raises:
            AbortError: The call was aborted.
            asyncio.CancelledError: The client has cancelled the call, or its deadline has passed.
        """
        serialize = self._method.serialize
        if serialize is not None:
            message = serialize(message)
        elif type(message) is not bytes:
            message = encoded(message)
        has_room = self._call.send(message)
        if has_room:
            self._burst += 1
            if self._burst == _BURST_LEN:
                await self._yield()
        elif has_room is None:
            self._raise_ended()
        else:
            await self._call.room()

    async def _yield(self):
        self._burst = 0
        await asyncio.sleep(0)

    def _raise_ended(self):
        if self._is_aborted:
            raise AbortError("the call was aborted")
        if self._call.cancelled():
            raise asyncio.CancelledError("the call was cancelled")
        raise UsageError("the call has ended")

    async def send_initial_metadata(self, initial_metadata):
        """Sends the initial metadata, at most once and before the first response.

        Raises:
            UsageError: It is too late.
        """
        if not self._call.send_initial_metadata(initial_metadata) and not self._call.cancelled():
            raise UsageError("the initial metadata was sent before; send it once, before the first response")

    async def abort(self, code, details="", trailing_metadata=()):
        """Ends the call with a status other than OK, and raises an exception to end the handler.

        Raises:
            AbortError: Always, if the arguments are valid.
            TypeError: The details are not text.
            UsageError: The call was aborted before.
            ValueError: The code is OK.
        """
        if self._is_aborted:
            raise UsageError("the call was aborted before")
        _check_details(details)
        number = _number(code)
        if number == 0:
            raise ValueError("a call cannot be aborted with OK; use another status")
        self._is_aborted = True
        self._code = code
        self._details = details
        if trailing_metadata:
            self._trailing_metadata = trailing_metadata
        finish(self._call, number, _text(details), self._trailing_metadata)
        raise AbortError(f"aborted with {code}: {_text(details)}")

    async def abort_with_status(self, status):
        """Same as `abort` with the code, details and trailing metadata of `status`."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata):
        """Sets the metadata to send at the end."""
        self._trailing_metadata = trailing_metadata

    def trailing_metadata(self):
        """Returns the metadata to send at the end."""
        return self._trailing_metadata

    def invocation_metadata(self):
        """Returns the client's metadata."""
        return self._call.invocation_metadata()

    def set_code(self, code):
        """Sets the code that the call ends with."""
        self._code = code

    def code(self):
        """Returns the code that the call ends with; None if it was not set."""
        return self._code

    def set_details(self, details):
        """Sets the text that the call ends with.

        Raises:
            TypeError: The details are not text.
        """
        _check_details(details)
        self._details = details

    def details(self):
        """Returns the text that the call ends with."""
        return self._details

    def set_compression(self, compression):
        """Sets the compression of all responses.

        Raises:
            ValueError: The response has started.
        """
        set_compression(self._call, compression)

    def disable_next_message_compression(self):
        """Sends the next response uncompressed."""
        self._call.disable_next_message_compression()

    def peer(self):
        """Returns the client's address as text."""
        return self._call.peer()

    def peer_identities(self):
        """Returns the client's identities as a list of bytes, or None if it is not authenticated."""
        return peer_identities(self.auth_context())

    def peer_identity_key(self):
        """Returns the name of the property of the identities, or None."""
        return peer_identity_key(self.auth_context())

    def auth_context(self):
        """Returns the properties of the connection's authentication, each a list of bytes."""
        return self._call.auth_context()

    def time_remaining(self):
        """Returns the seconds until the deadline, or None without one."""
        return self._call.time_remaining()

    def cancelled(self):
        """Returns whether the call was cancelled: by the client, its deadline or the server's stop."""
        return self._call.cancelled()

    def done(self):
        """Returns whether the call has ended."""
        return not self._call.is_active()

    def add_done_callback(self, callback):
        """Calls `callback` with this object when the call has ended."""
        if not self._call.on_end(callback, self):
            asyncio.get_running_loop().call_soon(callback, self)

    def _finish(self, response=None):
        """Ends the call: with `response` if it is not None and the code is OK."""
        code = 0 if self._code is None else _number(self._code)
        if code:
            finish(self._call, code, _text(self._details), self._trailing_metadata)
        elif response is not None and not self._trailing_metadata:
            self._call.respond(response)
        else:
            finish(self._call, 0, "", self._trailing_metadata, response)

    def _fail(self, error):
        """Ends the call because of an exception of the handler."""
        if isinstance(error, AbortError) and self._is_aborted:
            return
        if isinstance(error, asyncio.CancelledError):
            # By the client, or by the handler itself.
            finish(self._call, StatusCode.CANCELLED, "the handler was cancelled", self._trailing_metadata)
            return
        _LOGGER.error("the handler of %s has failed: %r", self._call.method, error, exc_info=error)
        code = 0 if self._code is None else _number(self._code)
        code = code or StatusCode.UNKNOWN.value[0]
        finish(self._call, code, f"Unexpected {type(error)}: {error}", self._trailing_metadata)


def _number(code):
    """Returns the number of a code, which is a member of `StatusCode` or its number."""
    return code.value[0] if isinstance(code, StatusCode) else int(code)


def _check_details(details):
    if not (details is None or isinstance(details, (str, bytes))):
        raise TypeError(f"details must be str, not {type(details).__name__}")


def _text(details):
    if isinstance(details, bytes):
        return details.decode("utf-8", "replace")
    return details or ""


def encoded(response):
    """Returns the message of a response without a serializer. As grpcio, it encodes `str`, and None is empty."""
    if isinstance(response, str):
        return response.encode()
    return b"" if response is None else response


class _Requests:
    """The requests of a stream."""

    def __init__(self, context):
        self._context = context

    def __aiter__(self):
        return self

    async def __anext__(self):
        request = await self._context.read()
        if request is EOF:
            raise StopAsyncIteration
        return request


async def serve_unary(method, call):
    """Runs a handler with one request and one response."""
    context = ServicerContext(call, method)
    try:
        message = call.take()
        if message is None:
            message = await call.receive()
            if message is None:
                call.finish(StatusCode.INTERNAL, "the request has no message", None)
                return
        deserialize = method.deserialize
        response = await method.function(message if deserialize is None else deserialize(message), context)
        serialize = method.serialize
        if serialize is not None:
            response = serialize(response)
        elif type(response) is not bytes:
            response = encoded(response)
        if context._code is None and not context._trailing_metadata:
            call.respond(response)
        else:
            context._finish(response)
    except BaseException as error:
        context._fail(error)
        if not isinstance(error, Exception):
            raise
    finally:
        call.release()


async def serve_stream(method, call):
    """Runs a handler with a stream of requests, of responses, or both."""
    context = ServicerContext(call, method)
    try:
        if method.takes_stream:
            request = _Requests(context)
        else:
            request = await context.read()
            if request is EOF:
                call.finish(StatusCode.INTERNAL, "the request has no message", None)
                return
        result = method.function(request, context)
        response = None
        if not method.sends_stream:
            response = await result
            response = encoded(response) if method.serialize is None else method.serialize(response)
        elif hasattr(result, "__aiter__"):
            await _send_all(context, result)
        else:
            # It writes by the context.
            await result
        context._finish(response)
    except BaseException as error:
        context._fail(error)
        if not isinstance(error, Exception):
            raise
    finally:
        call.release()


async def _send_all(context, responses):
    write = context.write
    try:
        async for response in responses:
            await write(response)
    except BaseException:
        # It may have failed here rather than in the generator.
        close = getattr(responses, "aclose", None)
        if close is not None:
            await close()
        raise
