"""Child processes made by `fork`, and by multiprocessing.

grpcio supports it for clients only, with an environment variable, and not on all of its event engines.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import stat
import threading
import time
from concurrent import futures

import echo
import grpc
import processes
import pytest

pytestmark = [
    pytest.mark.thalweg_only,
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def in_child(check):
    """Calls `check` in a child process. Fails if that does, or takes longer than 30 seconds."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            check()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(process, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise AssertionError("the child did not end")
        time.sleep(0.01)
    assert ended[1] == 0, "the child failed"


def sockets():
    """Returns the inodes of the sockets of this process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            status = os.fstat(int(name))
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


def test_child_uses_inherited_and_new_channels_and_the_parent_goes_on():
    with echo.serving() as (address, seen), grpc.insecure_channel(address) as channel:
        echo.call(channel)
        peer = seen.peer

        def check():
            for _ in range(3):
                assert echo.call(channel) == b"request"
            with grpc.insecure_channel(address) as fresh:
                assert echo.call(fresh) == b"request"

        in_child(check)
        assert seen.calls == 5
        assert seen.peer != peer, "the child has connections of its own"
        echo.call(channel)
        assert seen.peer == peer, "the parent has kept its connection"


def test_child_serves():
    def check():
        with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
            assert echo.call(channel) == b"request"

    check()
    in_child(check)
    check()


def test_child_of_a_thread_and_grandchildren():
    with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
        echo.call(channel)

        def check():
            assert echo.call(channel) == b"request"

        def check_again():
            check()
            in_child(check)
            check()

        failures = []

        def fork():
            try:
                in_child(check_again)
            except AssertionError as error:
                failures.append(error)

        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        assert not failures
        check()


def test_fork_during_calls_of_other_threads():
    """A lock that an I/O thread holds at the moment of the fork would block the child for ever."""
    stop = threading.Event()
    with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
        failures = []

        def call_on():
            try:
                while not stop.is_set():
                    echo.call(channel)
            except Exception as error:
                failures.append(error)

        callers = [threading.Thread(target=call_on) for _ in range(4)]
        for caller in callers:
            caller.start()
        try:
            for _ in range(20):
                in_child(lambda: echo.call(channel))
        finally:
            stop.set()
            for caller in callers:
                caller.join()
        assert not failures


def test_threads_that_fork_at_the_same_time(implementation):
    """Their forks overlap. The I/O threads go on after the last of them."""
    printed = processes.check(
        implementation,
        """
import os, threading
import echo, grpc

with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
    echo.call(channel)
    statuses = []

    def fork(number):
        for count in range(100):
            process = os.fork()
            if process == 0:
                # The last children find a runtime that goes on.
                os._exit(0 if count < 98 or echo.call(channel) == b"request" else 1)
            statuses.append(os.waitpid(process, 0)[1])

    threads = [threading.Thread(target=fork, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 300, statuses
    print(echo.call(channel))
""",
        timeout=50,
    )
    assert printed == "b'request'\n"


@pytest.mark.skipif(not os.path.exists("/proc/self/fdinfo"), reason="needs /proc")
def test_child_closes_the_sockets_of_its_parent():
    before = sockets()
    with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
        echo.call(channel)
        added = sockets() - before
        # The listener, both ends of the connection.
        assert len(added) >= 3

        def check():
            left = sockets() & added
            # The runtime's own, which is not connected to anything else.
            assert len(left) <= 1, left
            echo.call(channel)

        in_child(check)
        echo.call(channel)


@pytest.mark.skipif(not os.path.exists("/proc/self/fdinfo"), reason="needs /proc")
def test_port_of_a_stopped_server_is_free_while_a_child_lives():
    read_end, write_end = os.pipe()
    with echo.serving(options=[("grpc.so_reuseport", 0)]) as (address, _), grpc.insecure_channel(address) as channel:
        echo.call(channel)
        process = os.fork()
        if process == 0:
            os.close(write_end)
            os.read(read_end, 1)
            os._exit(0)
    try:
        host, _, port = address.rpartition(":")
        deadline = time.monotonic() + 5
        while True:
            with contextlib.closing(socket.socket()) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    other.bind((host, int(port)))
                    other.listen()
                    break
                except OSError:
                    assert time.monotonic() < deadline, "the port is still taken"
                    time.sleep(0.05)
    finally:
        os.close(write_end)
        os.close(read_end)
        os.waitpid(process, 0)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with echo.serving() as (address, seen), grpc.insecure_channel(address) as channel:
        echo.call(channel)
        results = context.Queue()
        workers = [context.Process(target=echo.worker, args=(address, results)) for _ in range(2)]
        for it in workers:
            it.start()
        received = [results.get(timeout=50) for _ in workers]
        for it in workers:
            it.join(30)
        assert received == [(b"from a worker", "thalweg.grpc")] * 2
        assert [it.exitcode for it in workers] == [0, 0]
        assert seen.calls == 3
        echo.call(channel)


def test_server_of_the_parent_ends_at_once_in_a_child():
    def create():
        return grpc.server(futures.ThreadPoolExecutor(1), handlers=handlers)

    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    handlers = [grpc.method_handlers_generic_handler("test.Echo", {"Echo": handler})]
    servers = [create(), create()]
    server, fresh = servers
    port = server.add_insecure_port("127.0.0.1:0")
    fresh.add_insecure_port("127.0.0.1:0")
    server.start()

    def check():
        nonlocal server, fresh
        for grace in (None, 0.1, 60):
            assert server.stop(grace).is_set()
        assert server.wait_for_termination() is False
        with pytest.raises(RuntimeError, match="create it after the fork"):
            fresh.start()
        assert fresh.stop(None).is_set()
        servers.clear()
        del server, fresh
        gc.collect()
        with echo.serving() as (address, _), grpc.insecure_channel(address) as channel:
            assert echo.call(channel) == b"request"

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert echo.call(channel) == b"request"
        in_child(check)
        assert echo.call(channel) == b"request"
        assert server.wait_for_termination(0.01) is True
    assert server.stop(None).is_set()


def test_aio_server_of_the_parent_ends_at_once_in_a_child():
    async def handle(request, context):
        return request

    async def stop_in_child():
        for grace in (None, 0.1, 60):
            await asyncio.wait_for(server.stop(grace), 10)
        assert await server.wait_for_termination() is False

    async def start():
        handlers = {"Echo": grpc.unary_unary_rpc_method_handler(handle)}
        server = grpc.aio.server(handlers=[grpc.method_handlers_generic_handler("test.Echo", handlers)])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    async def call(port):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            assert await channel.unary_unary(echo.METHOD)(b"request", timeout=10) == b"request"

    loop = asyncio.new_event_loop()
    try:
        server, port = loop.run_until_complete(start())
        loop.run_until_complete(call(port))
        in_child(lambda: asyncio.run(stop_in_child()))
        loop.run_until_complete(call(port))
        loop.run_until_complete(server.stop(None))
    finally:
        loop.close()
