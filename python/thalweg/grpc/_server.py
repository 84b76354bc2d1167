"""Servers of the blocking interface."""

import concurrent.futures.thread  # Its hook at exit must be registered before ours: ours runs first.
import contextvars
import functools
import logging
import os
import socket
import threading
import weakref

from thalweg import _native
from thalweg.grpc._handlers import CallDetails, Handlers, Method
from thalweg.grpc._interfaces import Server
from thalweg.grpc._options import server_settings
from thalweg.grpc._servicer_context import failure, serve
from thalweg.grpc._status import StatusCode
from thalweg.grpc._threads import callbacks

_LOGGER = logging.getLogger("grpc._server")

#: Calls after which a job gives its thread to the pool's other jobs. At 20 us a call that is every 5 ms.
_CALLS_PER_JOB = 256

#: Servers that run, for the end of the interpreter.
_running: "weakref.WeakSet[_Calls]" = weakref.WeakSet()


class _Calls:
    """The part of a server that its threads hold."""

    def __init__(self, pool, handlers, interceptors):
        self.queue = _native.CallQueue(getattr(pool, "_max_workers", None))
        self.handlers = Handlers(handlers)
        self.terminated = threading.Event()
        #: Cancels all calls; set with the native server.
        self.cancel_all = None
        self._pool = pool
        self._is_intercepted = bool(interceptors)
        find = self.handlers.find
        for interceptor in reversed(interceptors):
            find = functools.partial(interceptor.intercept_service, find)
        self._find = find
        self._rejects = False
        self._thread = None

    def start(self):
        """Starts the dispatcher."""
        self._thread = threading.Thread(target=self._dispatch, name="thalweg-dispatcher", daemon=True)
        self._thread.start()
        _running.add(self)

    def end_at_exit(self):
        """Cancels the calls, and ends the dispatcher before the interpreter ends, which would leave it without the GIL."""
        self.cancel_all()
        self.queue.close()
        self._thread.join(timeout=1)

    def _dispatch(self):
        # The native server closes the queue once all calls have ended.
        try:
            self.queue.dispatch(self._submit, self._reject)
        finally:
            self.terminated.set()

    def _submit(self):
        try:
            future = self._pool.submit(self._run_job)
        except RuntimeError:
            if not self._rejects:
                _LOGGER.exception("the server's thread pool takes no calls; they end with UNAVAILABLE")
            self._rejects = True
            return False
        self._rejects = False
        if future is not None:
            future.add_done_callback(self._job_done)
        return True

    def _job_done(self, future):
        if future.cancelled():
            self.queue.job_cancelled()

    def _reject(self, call):
        call.finish(StatusCode.UNAVAILABLE, "the server's thread pool is shut down", None)
        call.release()

    def _run_job(self):
        queue = self.queue
        queue.job_started()
        try:
            for _ in range(_CALLS_PER_JOB):
                call = queue.take()
                if call is None:
                    return
                contextvars.Context().run(self._serve, call)
                del call
        finally:
            queue.job_ended()

    def _serve(self, call):
        method = call.handler
        if method is None:
            method = self._method(call)
            if method is None:
                return
        serve(method, call)

    def _method(self, call):
        """Returns the method of a call. None: there is none, and the call has ended."""
        details = CallDetails(call.method, call.invocation_metadata())
        is_static = False
        try:
            if self._is_intercepted:
                handler = self._find(details)
            else:
                handler, is_static = self.handlers.find_static(details)
            if handler is not None:
                method = Method(handler)
                method.run = failure
                method.ends_at_none = True
                if is_static:
                    call.keep_handler(method)
                return method
            code, text = StatusCode.UNIMPLEMENTED, "Method not found!"
        except Exception:
            _LOGGER.exception("the lookup of the handler of %s failed", call.method)
            code, text = StatusCode.UNKNOWN, "Error in service handler!"
        call.finish(code, text, None)
        call.release()
        return None


class _Server(Server):
    """A server whose handlers run on the threads of a pool."""

    def __init__(self, pool, handlers, interceptors, options, maximum_concurrent_rpcs, compression):
        self._lock = threading.Lock()
        self._calls = _Calls(pool, handlers, interceptors)
        self._native = create_native(self._calls.queue, callbacks(), options, maximum_concurrent_rpcs, compression)
        self._calls.cancel_all = self._native.cancel_all
        self._is_started = False
        self._is_stopping = False

    def add_generic_rpc_handlers(self, generic_rpc_handlers):
        self._calls.handlers.add_generic(generic_rpc_handlers)

    def add_registered_method_handlers(self, service_name, method_handlers):
        if self._is_started:
            _LOGGER.warning("the server has started; the handlers of %s are not added", service_name)
            return
        self._calls.handlers.add_registered(service_name, method_handlers)

    def add_insecure_port(self, address):
        return add_port(self._native, address)

    def add_secure_port(self, address, server_credentials):
        return add_port(self._native, address, server_credentials)

    def start(self):
        with self._lock:
            if self._is_started:
                raise ValueError("the server was started before; a server starts once")
            self._is_started = True
            self._calls.start()
        self._native.start()

    def stop(self, grace):
        calls, native = self._calls, self._native
        if native.is_inherited:
            # It goes on in the parent process. Another thread may have held the lock at the fork.
            return _done()
        with self._lock:
            if not self._is_started:
                return _done()
            if not self._is_stopping:
                self._is_stopping = True
                native.drain(waits_for_handlers=False)
        if grace is None:
            native.cancel_all()
            calls.terminated.wait()
        elif not calls.terminated.is_set():
            threading.Thread(target=_cancel_after, args=(calls.terminated, grace, native), daemon=True).start()
        return calls.terminated

    def wait_for_termination(self, timeout=None):
        return not self._native.is_inherited and not self._calls.terminated.wait(timeout)

    def __del__(self):
        # It is missing if the constructor has failed.
        native = getattr(self, "_native", None)
        if native is None or not self._is_started or self._is_stopping:
            return
        native.drain(waits_for_handlers=False)
        native.cancel_all()


def _done():
    event = threading.Event()
    event.set()
    return event


def _cancel_after(terminated, grace, native):
    if not terminated.wait(max(grace, 0)):
        native.cancel_all()


def create_native(dispatch, completions, options, maximum_concurrent_rpcs, compression):
    """Returns a native server with the settings of a server of either interface."""
    if maximum_concurrent_rpcs is not None and maximum_concurrent_rpcs < 0:
        raise ValueError(f"maximum_concurrent_rpcs is {maximum_concurrent_rpcs}; it must not be negative")
    settings = server_settings(options, compression)
    return _native.Server(dispatch, completions, settings, maximum_concurrent_rpcs=maximum_concurrent_rpcs)


def add_port(native, address, credentials=None):
    """Binds an address and returns its port. A name stands for all of its addresses, of which one must be bound.

    Raises:
        RuntimeError: It cannot be bound.
    """
    if isinstance(address, bytes):
        address = address.decode()
    credentials = None if credentials is None else credentials._credentials
    port, failure_of_first = None, None
    for host, wanted in _endpoints(address):
        try:
            # All addresses of a name get the port that the system has chosen for the first.
            bound = native.add_port(host if wanted is None else f"{host}:{port or wanted}", credentials)
        except (RuntimeError, ValueError) as error:
            failure_of_first = failure_of_first or error
        else:
            port = port or bound
    if port is None:
        raise RuntimeError(f"Failed to bind to address {address}: {failure_of_first}") from failure_of_first
    return port


def _endpoints(address):
    """Returns hosts and ports to bind; the port is None if the first is a whole address, possibly an invalid one."""
    scheme, _, rest = address.partition(":")
    if scheme in ("ipv4", "ipv6", "dns"):
        address = rest.removeprefix("///")
    host, _, port = address.rpartition(":")
    if not host or ":" in host or address.startswith(("unix:", "unix-abstract:")):
        return [(address, None)]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return [(address, None)]
    endpoints = []
    for family, _, _, _, (ip, number, *_) in found:
        host = f"[{ip}]" if family == socket.AF_INET6 else ip
        if (host, number) not in endpoints:
            endpoints.append((host, number))
    return endpoints


def server(
    thread_pool,
    handlers=None,
    interceptors=None,
    options=None,
    maximum_concurrent_rpcs=None,
    compression=None,
    xds=False,
):
    """Creates a server.

    Args:
        thread_pool: The `concurrent.futures.ThreadPoolExecutor`, or a similar executor, that runs the handlers.
        handlers: Generic handlers; more can be added before the start.
        interceptors: `ServerInterceptor`s, the first is the outermost. They run on the pool, too.
        options: Pairs of grpcio's names of options and their values.
        maximum_concurrent_rpcs: The limit of calls at a time, waiting ones included. Calls beyond it end with
            RESOURCE_EXHAUSTED. None: no limit.
        compression: The compression of responses, a member of `grpc.Compression`.
        xds: Not supported.

    Raises:
        NotImplementedError: `xds` is true.
    """
    if xds:
        raise NotImplementedError("xDS is not supported; use xds=False")
    interceptors = tuple(interceptors or ())
    return _Server(thread_pool, handlers or (), interceptors, options, maximum_concurrent_rpcs, compression)


def _end_at_exit():
    for calls in list(_running):
        calls.end_at_exit()


# A child process has none of the threads.
os.register_at_fork(after_in_child=_running.clear)
# Ends servers before the pools, whose threads may wait for calls. Python has no public function for that.
threading._register_atexit(_end_at_exit)
