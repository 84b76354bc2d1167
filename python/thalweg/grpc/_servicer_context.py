"""The context of a call for handlers that run on threads, and how they run."""

import enum
import logging

from thalweg import _native
from thalweg.grpc._interfaces import ServicerContext
from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import RpcError

_LOGGER = logging.getLogger("grpc._server")


class Stage(enum.Enum):
    """A part of a call that can fail."""

    REQUEST = enum.auto()
    HANDLER = enum.auto()
    ITERATION = enum.auto()
    RESPONSE = enum.auto()


class Abort(Exception):
    """Ends a handler whose status `abort` has set."""


class Context(ServicerContext):
    """A handler's view of a call."""

    _code = None
    _details = None
    _trailing_metadata = None
    #: The last exception that this object has raised because the call had ended.
    _raised = None

    def __init__(self, call, method):
        self._call = call
        self._method = method

    def is_active(self):
        return self._call.is_active()

    def time_remaining(self):
        return self._call.time_remaining()

    def cancel(self):
        self._call.cancel()

    def add_callback(self, callback):
        return self._call.on_end(_run_callback, callback)

    def invocation_metadata(self):
        return self._call.invocation_metadata()

    def peer(self):
        return self._call.peer()

    def peer_identities(self):
        return peer_identities(self.auth_context())

    def peer_identity_key(self):
        return peer_identity_key(self.auth_context())

    def auth_context(self):
        return self._call.auth_context()

    def set_compression(self, compression):
        set_compression(self._call, compression)

    def disable_next_message_compression(self):
        self._call.disable_next_message_compression()

    def send_initial_metadata(self, initial_metadata):
        if self._call.cancelled():
            self._raise_rpc_error()
        if not self._call.send_initial_metadata(initial_metadata):
            raise ValueError("the initial metadata was sent before; send it once, before the first response")

    def set_trailing_metadata(self, trailing_metadata):
        self._trailing_metadata = trailing_metadata

    def trailing_metadata(self):
        return self._trailing_metadata

    def abort(self, code, details):
        if code == StatusCode.OK:
            _LOGGER.error("abort was called with StatusCode.OK; the call ends with UNKNOWN")
            code, details = StatusCode.UNKNOWN, ""
        self._code = code
        self._details = _encoded(details)
        raise Abort(code, details)

    def abort_with_status(self, status):
        self._trailing_metadata = status.trailing_metadata
        self.abort(status.code, status.details)

    def set_code(self, code):
        self._code = code

    def code(self):
        return self._code

    def set_details(self, details):
        self._details = _encoded(details)

    def details(self):
        return self._details

    def _raise_rpc_error(self):
        self._raised = RpcError("the call has ended")
        raise self._raised

    def _finish(self, response=None):
        """Ends the call: with `response` if it is not None and the code is OK."""
        code = number_of(self._code)
        if code == 0:
            if self._trailing_metadata is None and response is not None:
                self._call.respond(response)
                return
        else:
            response = None
        details = "" if code == 0 or self._details is None else self._details.decode("utf-8", "replace")
        finish(self._call, code, details, self._trailing_metadata, response)

    def _fail(self, stage, error):
        """Ends the call because of an exception."""
        if isinstance(error, Abort):
            self._finish()
            return
        if error is self._raised:
            return
        _LOGGER.error("the call of %s failed: %s", self._call.method, error, exc_info=error)
        code, details = self._method.run(stage, error)
        if self._code is None or self._code is StatusCode.OK:
            self._code = code
        if self._details is None:
            self._details = details.encode("utf-8", "replace")
        self._finish()


def _encoded(details):
    """Returns details as bytes, which `details` returns on grpcio, too."""
    if isinstance(details, str):
        return details.encode()
    if not isinstance(details, bytes):
        raise TypeError(f"details must be str or bytes, not {type(details).__name__}")
    return details


def _run_callback(callback):
    try:
        callback()
    except Exception:
        _LOGGER.exception("a callback of a call failed")


def number_of(code):
    """Returns the number of a code; UNKNOWN if it is none. None is OK."""
    if code is None:
        return 0
    return code.value[0] if isinstance(code, StatusCode) else StatusCode.UNKNOWN.value[0]


def finish(call, code, details, trailing_metadata, response=None):
    """Ends a call. With trailing metadata that cannot be sent, it ends with INTERNAL.

    Raises:
        TypeError: The response cannot be sent.
    """
    try:
        call.finish(code, details, trailing_metadata, response)
    except _native.InvalidMetadata as error:
        _LOGGER.error("the call of %s failed: %s", call.method, error, exc_info=error)
        call.finish(StatusCode.INTERNAL, f"Invalid metadata: {error}", None)


def set_compression(call, compression):
    """Sets the compression of the responses of `call`.

    Raises:
        ValueError: The response has started.
    """
    if not call.set_compression(int(compression)):
        raise ValueError("the compression can only be set before the initial metadata is sent")


def peer_identity_key(auth_context):
    """Returns the name of the property that identifies the client, or None."""
    for key in ("x509_subject_alternative_name", "x509_common_name"):
        if key in auth_context:
            return key
    # Local credentials identify the client by the kind of its connection.
    key = "transport_security_type"
    return key if auth_context.get(key) == [b"local"] else None


def peer_identities(auth_context):
    """Returns the client's identities, or None."""
    key = peer_identity_key(auth_context)
    return None if key is None else auth_context[key]


def failure(stage, error):
    """Returns the code and details of a failed call of a server of the blocking interface."""
    if stage is Stage.REQUEST:
        return StatusCode.INTERNAL, "Exception deserializing request!"
    if stage is Stage.RESPONSE:
        return StatusCode.INTERNAL, "Failed to serialize response!"
    doing = "iterating responses" if stage is Stage.ITERATION else "calling application"
    return StatusCode.UNKNOWN, f"Exception {doing}: {error}"


def serve(method, call):
    """Runs the handler of a call on the current thread. `method.run` is called as `failure`."""
    context = Context(call, method)
    stage = Stage.REQUEST
    try:
        if method.takes_stream:
            request = _Requests(context)
        else:
            request = _receive(context)
            if request is None:
                return
        stage = Stage.HANDLER
        if method.is_non_blocking:
            call = None
            _NonBlocking(context).start(request)
            return
        response = method.function(request, context)
        if method.sends_stream:
            stage = Stage.ITERATION
            _send_all(context, response)
        else:
            stage = Stage.RESPONSE
            context._finish(_serialized(method, response))
    except Exception as error:
        context._fail(stage, error)
    except BaseException as error:
        context._fail(stage, error)
        raise
    finally:
        if call is not None:
            call.release()


class _NonBlocking:
    """A handler that returns at once and sends its responses later, from any thread, by the function it gets.

    grpcio calls it so if the handler has the attribute `experimental_non_blocking`. The handler runs on the pool in its
    attribute `experimental_thread_pool`, if there is one.
    """

    def __init__(self, context):
        self._context = context

    def start(self, request):
        """Calls the handler."""
        pool = getattr(self._context._method.function, "experimental_thread_pool", None)
        if pool is None:
            self._run(request)
        else:
            pool.submit(self._run, request)

    def _run(self, request):
        context = self._context
        try:
            context._method.function(request, context, self._send)
        except Exception as error:
            self._end(Stage.HANDLER, error)

    def _send(self, response):
        """Sends a response and waits for room for another; None ends the call. Without effect once that has ended."""
        context = self._context
        call = context._call
        if response is None:
            context._finish()
            call.release()
            return
        try:
            has_room = call.send(_serialized(context._method, response))
        except Exception as error:
            self._end(Stage.RESPONSE, error)
            return
        if has_room is None:
            call.release()
        elif not has_room:
            call.room_blocking()

    def _end(self, stage, error):
        self._context._fail(stage, error)
        self._context._call.release()


def _receive(context):
    """Waits for the only request and returns it; None if the call has ended."""
    call = context._call
    message = call.take()
    if message is None:
        message = call.receive_blocking()
        if message is None:
            call.finish(StatusCode.INTERNAL, "the request has no message", None)
            return None
    return _deserialized(context._method, message)


def _deserialized(method, message):
    request = message if method.deserialize is None else method.deserialize(message)
    if request is None:
        raise ValueError("the deserializer has returned None")
    return request


def _serialized(method, response):
    message = response if method.serialize is None else method.serialize(response)
    if message is None:
        raise TypeError("the response is None, and there is no serializer")
    return message


def _send_all(context, responses):
    call, method = context._call, context._method
    for response in iter(responses):
        if response is None and method.ends_at_none:
            break
        try:
            has_room = call.send(_serialized(method, response))
        except Exception as error:
            context._fail(Stage.RESPONSE, error)
            return
        if not has_room:
            if has_room is None:
                return
            call.room_blocking()
    context._finish()


class _Requests:
    """The requests of a stream. Iteration raises `RpcError` once the client has cancelled."""

    def __init__(self, context):
        self._context = context

    def __iter__(self):
        return self

    def __next__(self):
        context = self._context
        call = context._call
        message = call.take()
        if message is None:
            message = call.receive_blocking()
            if message is None:
                if call.cancelled():
                    context._raise_rpc_error()
                raise StopIteration
        try:
            return _deserialized(context._method, message)
        except Exception as error:
            context._fail(Stage.REQUEST, error)
        context._raise_rpc_error()

    #: grpcio's iterators have it, too.
    next = __next__
