"""Ports, start, stop and exit of blocking servers."""

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent import futures

import grpc
import pytest

UU = grpc.unary_unary_rpc_method_handler


@pytest.fixture
def pool():
    with futures.ThreadPoolExecutor(4) as pool:
        yield pool


def make_server(pool, handler=None, **arguments):
    server = grpc.server(pool, **arguments)
    methods = {"m": UU(handler or (lambda request, context: request))}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", methods),))
    return server


def call(target, method="m", timeout=10):
    """Calls by a channel of its own, and returns the response or the code."""
    with grpc.insecure_channel(target) as channel:
        try:
            return channel.unary_unary(f"/s/{method}")(b"q", timeout=timeout)
        except grpc.RpcError as error:
            return error.code()


def test_ports(pool, tmp_path):
    server = make_server(pool)
    port = server.add_insecure_port("localhost:0")
    unix, abstract = f"unix:{tmp_path}/s.sock", f"unix-abstract:thalweg-{id(server)}"
    assert [server.add_insecure_port(address) for address in (unix, abstract)] == [1, 1]
    server.start()
    assert [call(target) for target in (f"localhost:{port}", unix, abstract)] == [b"q"] * 3
    server.stop(None)


@pytest.mark.parametrize("address", ["127.0.0.1.1:0", "bogus", "", "unix:/nonexistent/folder/s.sock"])
def test_address_that_cannot_be_bound_is_a_runtime_error(pool, address):
    with pytest.raises(RuntimeError, match="Failed to bind to address"):
        make_server(pool).add_insecure_port(address)


def test_port_of_another_program_is_a_runtime_error(pool):
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(RuntimeError, match="Failed to bind to address"):
            make_server(pool).add_insecure_port(f"127.0.0.1:{other.getsockname()[1]}")


def test_second_start_is_an_error(pool):
    server = make_server(pool)
    server.start()
    with pytest.raises(ValueError):
        server.start()
    server.stop(None)


def test_generic_handler_without_service_is_an_error(pool):
    with pytest.raises(AttributeError):
        grpc.server(pool, handlers=(object(),))
    with pytest.raises(AttributeError):
        make_server(pool).add_generic_rpc_handlers((object(),))


def test_registered_handlers_come_first(pool):
    server = make_server(pool)
    server.add_registered_method_handlers("s", {"m": UU(lambda request, context: b"registered")})
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    assert call(f"127.0.0.1:{port}") == b"registered"
    server.stop(None)


class Blocked:
    """A running server with a call whose handler waits."""

    def __init__(self, pool):
        self.started, self.go = threading.Event(), threading.Event()
        self.server = make_server(pool, self._handle)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.result = futures.Future()
        target = f"127.0.0.1:{port}"
        threading.Thread(target=lambda: self.result.set_result(call(target, timeout=30))).start()
        assert self.started.wait(10)

    def _handle(self, request, context):
        self.started.set()
        self.go.wait(20)
        return b"done"


def test_stop_without_grace_cancels_calls(pool):
    it = Blocked(pool)
    assert it.server.stop(None).is_set()
    assert it.result.result(10) == grpc.StatusCode.UNAVAILABLE
    assert it.server.wait_for_termination() is False
    it.go.set()


def test_stop_with_grace_lets_calls_end(pool):
    it = Blocked(pool)
    stopped = it.server.stop(30)
    assert not stopped.wait(0.2)
    it.go.set()
    assert stopped.wait(10)
    assert it.result.result(10) == b"done"


def test_stop_cancels_calls_after_the_grace(pool):
    it = Blocked(pool)
    start = time.monotonic()
    assert it.server.stop(0.3).wait(10)
    assert 0.25 < time.monotonic() - start < 5
    assert it.result.result(10) == grpc.StatusCode.UNAVAILABLE
    it.go.set()


@pytest.mark.parametrize("grace", [None, 0.1])
def test_later_stop_shortens_the_grace(pool, grace):
    it = Blocked(pool)
    first = it.server.stop(60)
    assert it.server.stop(grace).wait(10)
    assert first.wait(10)
    assert it.result.result(10) == grpc.StatusCode.UNAVAILABLE
    it.go.set()


def test_handler_may_stop_its_server(pool):
    stopped = threading.Event()

    def handler(request, context):
        server.stop(None)
        stopped.set()
        return b""

    server = make_server(pool, handler)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    call(f"127.0.0.1:{port}")
    assert stopped.wait(10)
    assert server.wait_for_termination(10) is False


def test_server_can_be_stopped_in_a_callback(pool):
    stopped = threading.Event()
    server = make_server(pool)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def callback(_):
        server.stop(None)
        stopped.set()

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/s/m").future(b"q").add_done_callback(callback)
        assert stopped.wait(10)


def test_wait_for_termination_times_out(pool):
    server = make_server(pool)
    server.start()
    assert server.wait_for_termination(0.05) is True
    waiting = pool.submit(server.wait_for_termination)
    server.stop(None)
    assert waiting.result(10) is False


def test_server_that_never_started_stops_at_once(pool):
    assert make_server(pool).stop(None).is_set()
    assert make_server(pool).stop(5).is_set()


def test_dropped_server_stops(pool):
    server = make_server(pool)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    assert call(f"127.0.0.1:{port}") == b"q"
    del server
    gc.collect()
    deadline = time.monotonic() + 20
    while call(f"127.0.0.1:{port}", timeout=1) != grpc.StatusCode.UNAVAILABLE:
        assert time.monotonic() < deadline, "the server goes on"
        time.sleep(0.1)


@pytest.mark.thalweg_only
def test_calls_end_when_the_pool_is_shut_down(caplog):
    # grpcio's dispatcher dies.
    pool = futures.ThreadPoolExecutor(1)
    server = make_server(pool)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    pool.shutdown()
    assert [call(f"127.0.0.1:{port}") for _ in range(2)] == [grpc.StatusCode.UNAVAILABLE] * 2
    assert server.stop(5).wait(10)


@pytest.mark.thalweg_only
def test_cancelled_jobs_of_the_pool_do_not_block_calls():
    pool = futures.ThreadPoolExecutor(1)
    server = make_server(pool)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    go = threading.Event()
    pool.submit(go.wait, 20)
    calling = threading.Thread(target=call, args=(f"127.0.0.1:{port}",))
    calling.start()
    time.sleep(0.3)
    pool.shutdown(wait=False, cancel_futures=True)
    go.set()
    calling.join(5)
    assert not calling.is_alive(), "the call ends with UNAVAILABLE"
    server.stop(None)


def test_xds_is_not_ignored(pool):
    if hasattr(grpc, "_cython") and hasattr(grpc._cython, "cygrpc") and hasattr(grpc._cython.cygrpc, "Server"):
        pytest.skip("grpcio supports xDS")
    with pytest.raises(NotImplementedError):
        grpc.server(pool, xds=True)


PROGRAM = """
import os, signal, sys, threading, time
if os.environ.get("THALWEG_TEST_GRPC", "{implementation}") == "thalweg":
    import thalweg.grpc
    thalweg.grpc.install()
import grpc
from concurrent import futures

def handler(requests, context):
    for request in requests:
        yield request

server = grpc.server(futures.ThreadPoolExecutor(4))
methods = {{"m": grpc.stream_stream_rpc_method_handler(handler)}}
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", methods),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
"""


def run_program(end):
    """Starts a program with a server, has a call in progress, and returns the program's exit code and stderr."""
    implementation = "thalweg" if "thalweg" in grpc.__file__ else "grpcio"
    program = PROGRAM.format(implementation=implementation) + textwrap.dedent(end)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        port = int(process.stdout.readline())
        hold = threading.Event()

        def requests():
            yield b"1"
            hold.wait(20)

        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            responses = channel.stream_stream("/s/m")(requests())
            assert next(responses) == b"1"
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            _, errors = process.communicate(timeout=20)
            hold.set()
        return process.returncode, errors, time.monotonic() - start
    finally:
        process.kill()


@pytest.mark.parametrize(
    "end",
    [
        """
        try:
            print(port, flush=True)
            server.wait_for_termination()
        except KeyboardInterrupt:
            server.stop(None)
        """,
        """
        try:
            print(port, flush=True)
            server.wait_for_termination()
        except KeyboardInterrupt:
            pass
        """,
        """
        signal.signal(signal.SIGINT, lambda *_: server.stop(0.2))
        print(port, flush=True)
        server.wait_for_termination()
        """,
    ],
    ids=["stops", "goes on", "stops in signal handler"],
)
@pytest.mark.thalweg_only
def test_program_ends_with_calls_in_progress(end):
    # grpcio waits for handlers that wait for their clients.
    code, errors, seconds = run_program(end)
    assert (code, errors) == (0, "")
    assert seconds < 10
