"""Ports, start and stop of asyncio servers, and their interceptors."""

import asyncio
import gc
import socket
import threading
import time
import weakref

import grpc
import pytest

UU = grpc.unary_unary_rpc_method_handler


async def echo(request, context):
    return request


def make_server(methods=None, **arguments):
    server = grpc.aio.server(**arguments)
    handlers = {"echo": UU(echo)} if methods is None else methods
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", handlers),))
    return server


async def call(target, method="echo", request=b"q", timeout=10):
    """Calls by a channel of its own, and returns the response or the code."""

    def run():
        with grpc.insecure_channel(target) as channel:
            try:
                return channel.unary_unary(f"/s/{method}")(request, timeout=timeout)
            except grpc.RpcError as error:
                return error.code()

    return await asyncio.to_thread(run)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::]:0", "0.0.0.0:0", "localhost:0", "[::1]:0"])
async def test_port_zero_is_chosen_by_the_system(address):
    server = make_server()
    port = server.add_insecure_port(address)
    assert port > 1023
    await server.start()
    host = {"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "127.0.0.1", "localhost:0": "localhost"}.get(address, "[::1]")
    assert await call(f"{host}:{port}") == b"q"
    await server.stop(None)


async def test_name_stands_for_all_its_addresses():
    families = {found[0] for found in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
    hosts = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "[::1]"}
    server = make_server()
    port = server.add_insecure_port("localhost:0")
    await server.start()
    assert [await call(f"{hosts[family]}:{port}") for family in families] == [b"q"] * len(families)
    await server.stop(None)


@pytest.mark.thalweg_only
@pytest.mark.parametrize("address", ["ipv4:127.0.0.1:0", "ipv6:[::1]:0", "dns:localhost:0", "dns:///localhost:0"])
async def test_address_may_be_a_target(address):
    # grpcio rejects them.
    server = make_server()
    port = server.add_insecure_port(address)
    await server.start()
    assert await call(address.removesuffix(":0") + f":{port}") == b"q"
    await server.stop(None)


async def test_unix_sockets(tmp_path):
    server = make_server()
    target, abstract = f"unix:{tmp_path}/s.sock", f"unix-abstract:thalweg-{id(server)}"
    assert server.add_insecure_port(target) == 1
    assert server.add_insecure_port(abstract) == 1
    await server.start()
    assert await call(target) == b"q"
    assert await call(abstract) == b"q"
    await server.stop(None)


async def test_several_ports():
    server = make_server()
    ports = [server.add_insecure_port("127.0.0.1:0") for _ in range(3)]
    await server.start()
    assert [await call(f"127.0.0.1:{port}") for port in ports] == [b"q"] * 3
    await server.stop(None)


@pytest.mark.parametrize("address", ["127.0.0.1.1:0", "bogus", "", "unix:/nonexistent/folder/s.sock"])
async def test_address_that_cannot_be_bound_is_a_runtime_error(address):
    server = make_server()
    with pytest.raises(RuntimeError, match="Failed to bind to address"):
        server.add_insecure_port(address)
    await server.stop(None)


@pytest.mark.thalweg_only
async def test_stop_waits_for_handlers():
    server, blocked, calling = await blocked_server()
    await server.stop(None)
    assert blocked.cancelled
    await calling


async def test_port_of_another_program_is_a_runtime_error():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(RuntimeError, match="Failed to bind to address"):
            make_server().add_insecure_port(f"127.0.0.1:{other.getsockname()[1]}")


async def test_registered_handlers_come_first():
    async def registered(request, context):
        return b"registered"

    server = make_server()
    server.add_registered_method_handlers("s", {"echo": UU(registered)})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert await call(f"127.0.0.1:{port}") == b"registered"
    await server.stop(None)


async def test_generic_handler_decides_by_metadata():
    class ByMetadata(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            assert handler_call_details.method == "/s/any"
            kind = dict(handler_call_details.invocation_metadata).get("kind")
            return None if kind is None else UU(lambda request, context: kind.encode())

    server = grpc.aio.server(handlers=(ByMetadata(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    def run():
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            method = channel.unary_unary("/s/any")
            assert [method(b"", metadata=(("kind", kind),)) for kind in "ab"] == [b"a", b"b"]
            with pytest.raises(grpc.RpcError) as raised:
                method(b"")
            assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED

    await asyncio.to_thread(run)
    await server.stop(None)


class Blocked:
    """A handler that blocks until it is let go."""

    def __init__(self):
        self.started, self.go, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def __call__(self, request, context):
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return b"done"


async def blocked_server():
    blocked = Blocked()

    async def handler(request, context):
        return await blocked(request, context)

    server = make_server({"m": UU(handler)})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    calling = asyncio.ensure_future(call(f"127.0.0.1:{port}", "m", timeout=30))
    await asyncio.wait_for(blocked.started.wait(), 10)
    return server, blocked, calling


async def test_stop_without_grace_cancels_calls():
    server, blocked, calling = await blocked_server()
    await server.stop(None)
    assert await calling == grpc.StatusCode.UNAVAILABLE
    # grpcio does not wait for the handler.
    for _ in range(100):
        if blocked.cancelled:
            break
        await asyncio.sleep(0.05)
    assert blocked.cancelled
    assert await server.wait_for_termination() is False


async def test_stop_with_grace_lets_calls_end():
    server, blocked, calling = await blocked_server()
    stopping = asyncio.ensure_future(server.stop(30))
    await asyncio.sleep(0.1)
    assert not stopping.done()
    blocked.go.set()
    await asyncio.wait_for(stopping, 10)
    assert await calling == b"done"


async def test_stop_cancels_calls_after_the_grace():
    server, _, calling = await blocked_server()
    start = time.monotonic()
    await server.stop(0.3)
    assert 0.25 < time.monotonic() - start < 5
    assert await calling == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("grace", [None, 0.1])
async def test_later_stop_shortens_the_grace(grace):
    server, _, calling = await blocked_server()
    first = asyncio.ensure_future(server.stop(60))
    await asyncio.sleep(0.1)
    await asyncio.wait_for(server.stop(grace), 10)
    await asyncio.wait_for(first, 10)
    assert await calling == grpc.StatusCode.UNAVAILABLE


async def test_stopping_server_accepts_no_calls():
    server, blocked, calling = await blocked_server()
    stopping = asyncio.ensure_future(server.stop(30))
    await asyncio.sleep(0.1)
    assert not stopping.done()
    blocked.go.set()
    await stopping
    assert await calling == b"done"


async def test_wait_for_termination_times_out():
    server = make_server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert await server.wait_for_termination(0.05) is True
    waiting = asyncio.ensure_future(server.wait_for_termination())
    await server.stop(None)
    assert await asyncio.wait_for(waiting, 10) is False
    await server.stop(None)


async def test_dropped_server_stops():
    server = make_server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert await call(f"127.0.0.1:{port}") == b"q"
    del server
    gc.collect()
    for _ in range(100):
        await asyncio.sleep(0.05)
        if await call(f"127.0.0.1:{port}", timeout=1) == grpc.StatusCode.UNAVAILABLE:
            return
    pytest.fail("the server goes on")


class Servicer:
    """Keeps its server."""

    def __init__(self):
        self.server = make_server({"echo": UU(self.echo)})
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    async def echo(self, request, context):
        return request


@pytest.mark.parametrize("is_called", [True, False])
async def test_stopped_server_in_a_cycle_is_collected(is_called):
    servicer = Servicer()
    await servicer.server.start()
    if is_called:
        assert await call(f"127.0.0.1:{servicer.port}") == b"q"
    await servicer.server.stop(None)
    left = weakref.ref(servicer)
    del servicer
    await until_collected(left)


async def test_server_in_a_cycle_that_never_started_is_collected():
    left = weakref.ref(Servicer())
    await until_collected(left)


async def until_collected(left):
    for _ in range(100):
        gc.collect()
        if left() is None:
            return
        await asyncio.sleep(0.05)
    pytest.fail("the servicer is still there")


class Recording(grpc.aio.ServerInterceptor):
    def __init__(self, name, log):
        self._name, self._log = name, log

    async def intercept_service(self, continuation, handler_call_details):
        self._log.append((self._name, handler_call_details.method))
        await asyncio.sleep(0)
        return await continuation(handler_call_details)


class Plain(grpc.aio.ServerInterceptor):
    """Returns the awaitable of the continuation."""

    def intercept_service(self, continuation, handler_call_details):
        return continuation(handler_call_details)


async def test_interceptors_run_in_order():
    log = []
    server = make_server(interceptors=(Recording("a", log), Plain(), Recording("b", log)))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert await call(f"127.0.0.1:{port}") == b"q"
    assert await call(f"127.0.0.1:{port}", "other") == grpc.StatusCode.UNIMPLEMENTED
    assert log == [("a", "/s/echo"), ("b", "/s/echo"), ("a", "/s/other"), ("b", "/s/other")]
    await server.stop(None)


class Replacing(grpc.aio.ServerInterceptor):
    async def intercept_service(self, continuation, handler_call_details):
        if handler_call_details.method == "/s/fails":
            raise KeyError("no")
        handler = await continuation(handler_call_details)
        if handler_call_details.method == "/s/refused":

            async def refuse(request, context):
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")

            return UU(refuse)

        async def wrapped(request, context):
            return b"<" + await handler.unary_unary(request, context) + b">"

        return UU(wrapped)


async def test_interceptors_replace_handlers():
    server = make_server(interceptors=(Replacing(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    target = f"127.0.0.1:{port}"
    assert await call(target) == b"<q>"
    assert await call(target, "refused") == grpc.StatusCode.UNAUTHENTICATED
    assert await call(target, "fails") == grpc.StatusCode.UNKNOWN
    await server.stop(None)


async def test_interceptor_of_a_wrong_class_is_rejected():
    with pytest.raises(ValueError):
        grpc.aio.server(interceptors=(object(),))


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
@pytest.mark.parametrize(
    # grpcio's asyncio server ignores `set_compression` unless the server compresses.
    "where", ["server", pytest.param("call", marks=pytest.mark.thalweg_only), "next"]
)
async def test_responses_are_compressed(compression, where):
    async def handler(request, context):
        if where == "call":
            context.set_compression(compression)
        if where == "next":
            context.disable_next_message_compression()
        return bytes(100_000)

    server = make_server({"m": UU(handler)}, compression=None if where == "call" else compression)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    proxy = CountingProxy(port)
    assert await call(f"127.0.0.1:{proxy.port}", "m") == bytes(100_000)
    assert (proxy.received < 20_000) == (where != "next")
    await server.stop(None)


class CountingProxy:
    """Counts the bytes of one connection from a server."""

    def __init__(self, port):
        self.received = 0
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]

        def run():
            with listener, listener.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as server:
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                self._pump(server, client, True)

        threading.Thread(target=run, daemon=True).start()

    def _pump(self, source, sink, counts):
        try:
            while data := source.recv(65536):
                self.received += len(data) if counts else 0
                sink.sendall(data)
        except OSError:
            pass
