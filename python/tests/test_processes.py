"""Forks, the interpreter's exit, signals, and processes that do nothing."""

import re

import calls_pb2
import calls_pb2_grpc
import grpc
import processes
import psutil
import pytest

_PRELUDE = """
import asyncio, gc, os, signal, sys, threading, time
import calls_pb2, calls_pb2_grpc, grpc
import servers

def unary(address):
    with grpc.insecure_channel(address) as channel:
        assert calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(text="x"), timeout=20).text == "x"

async def aio_unary(address):
    async with grpc.aio.insecure_channel(address) as channel:
        assert (await calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(text="x"), timeout=20)).text == "x"
"""


@pytest.fixture(scope="module")
def server(implementation):
    """The address of a server in another process."""
    with processes.Server(implementation, "calls_server.py", "aio") as server:
        yield server.address


@pytest.fixture
def check(implementation):
    def run(source, *arguments):
        return processes.check(implementation, _PRELUDE + source, *arguments)

    return run


def test_child_of_fork_calls_before_its_parent_does(check, server):
    check(
        """
address = sys.argv[1]
child = os.fork()
if child == 0:
    unary(address)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
unary(address)
""",
        server,
    )


@pytest.mark.thalweg_only
def test_child_of_fork_calls_while_its_parent_has_channels(check, server):
    """grpcio supports this only with `GRPC_ENABLE_FORK_SUPPORT`, and not for asyncio."""
    check(
        """
address = sys.argv[1]
channel = grpc.insecure_channel(address)
calls = calls_pb2_grpc.CallsStub(channel)
calls.Unary(calls_pb2.Request())
asyncio.run(aio_unary(address))
for _ in range(3):
    child = os.fork()
    if child == 0:
        unary(address)
        asyncio.run(aio_unary(address))
        os._exit(0)
    calls.Unary(calls_pb2.Request())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
calls.Unary(calls_pb2.Request())
""",
        server,
    )


@pytest.mark.thalweg_only
def test_child_of_fork_may_exit_with_its_parents_objects(check, server):
    """Objects of the parent are dropped in the child, by the garbage collector and at its exit."""
    check(
        """
address = sys.argv[1]
channel = grpc.insecure_channel(address)
responses = calls_pb2_grpc.CallsStub(channel).BidiStream(iter(()))
from concurrent.futures import ThreadPoolExecutor
server = grpc.server(ThreadPoolExecutor())
server.add_insecure_port("localhost:0")
server.start()
child = os.fork()
if child == 0:
    del responses, channel, server
    gc.collect()
    unary(address)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
server.stop(None).wait()
""",
        server,
    )


@pytest.mark.thalweg_only
def test_collection_while_a_cancellation_is_raised(check, server):
    """The garbage collector runs Python code, which uses the awaitable: no lock may be held."""
    printed = check(
        """
async def main():
    async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
        awaitable = calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(sleep_ms=1_000)).__await__()
        assert awaitable.cancel("text")
        seen = []
        gc.callbacks.append(lambda phase, info: seen.append(awaitable.done()))
        gc.set_threshold(1)
        for _ in range(100):
            try:
                next(awaitable)
            except asyncio.CancelledError as error:
                assert error.args == ("text",)
        gc.set_threshold(700)
        gc.callbacks.clear()
        print(len(seen) > 0 and all(seen))
asyncio.run(main())
""",
        server,
    )
    assert printed == "True\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_multiprocessing(implementation, server, tmp_path, method):
    (tmp_path / "workers.py").write_text(
        "import calls_pb2, calls_pb2_grpc, grpc\n"
        "def work(address):\n"
        "    with grpc.insecure_channel(address) as channel:\n"
        "        request = calls_pb2.Request(text='x')\n"
        "        return calls_pb2_grpc.CallsStub(channel).Unary(request, timeout=20).text\n"
    )
    source = """
import multiprocessing
sys.path.insert(0, sys.argv[2])
import workers
context = multiprocessing.get_context(sys.argv[3])
with context.Pool(2, initializer=__import__, initargs=("chosen",)) as pool:
    print(pool.map(workers.work, [sys.argv[1]] * 6))
"""
    # The children import modules by themselves.
    prelude = "import os; os.environ['PYTHONPATH'] += os.pathsep + os.environ['THALWEG_TEST_PROTOS']\n"
    printed = processes.check(implementation, prelude + _PRELUDE + source, server, str(tmp_path), method)
    assert printed.strip() == str(["x"] * 6)


@pytest.mark.parametrize("interface", ["blocking", "aio"])
@pytest.mark.parametrize(
    "left_open",
    ["channel", "finished call", "future in flight", "stream in flight", "server", "thread in a call"],
)
def test_interpreter_exits_with_everything_open(check, server, interface, left_open):
    sources = {
        "blocking": {
            "channel": "channel = grpc.insecure_channel(address)",
            "finished call": "channel = grpc.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).Unary.with_call(calls_pb2.Request())",
            "future in flight": "channel = grpc.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).Unary.future(calls_pb2.Request(sleep_ms=1000))",
            "stream in flight": "channel = grpc.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).ServerStream(calls_pb2.Request(responses=99, sleep_ms=20)); "
            "next(call)",
            "server": "from concurrent.futures import ThreadPoolExecutor; server = grpc.server(ThreadPoolExecutor()); "
            "server.add_insecure_port('localhost:0'); server.start()",
            "thread in a call": "channel = grpc.insecure_channel(address); "
            "call = lambda: calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(sleep_ms=3000)); "
            "threading.Thread(target=call, daemon=True).start(); time.sleep(0.2)",
        },
        "aio": {
            "channel": "channel = grpc.aio.insecure_channel(address)",
            "finished call": "channel = grpc.aio.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request()); await call",
            "future in flight": "channel = grpc.aio.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(sleep_ms=1000)); await asyncio.sleep(0.1)",
            "stream in flight": "channel = grpc.aio.insecure_channel(address); "
            "call = calls_pb2_grpc.CallsStub(channel).ServerStream(calls_pb2.Request(responses=99, sleep_ms=20)); "
            "await call.read()",
            "server": "server = grpc.aio.server(); server.add_insecure_port('localhost:0'); await server.start()",
            "thread in a call": "channel = grpc.aio.insecure_channel(address); task = asyncio.create_task("
            "calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(sleep_ms=3000)).code()); await asyncio.sleep(0.1)",
        },
    }
    line = sources[interface][left_open]
    if interface == "aio":
        names = "server" if left_open == "server" else "channel, call" if "call" in line else "channel"
        names = "channel, task" if "task" in line else names
        source = f"async def main(address):\n    global {names}\n    {line}\nasyncio.run(main(sys.argv[1]))\n"
    else:
        source = f"address = sys.argv[1]\n{line}\n"
    assert check(source + "print('end')", server).strip() == "end"


def test_ctrl_c_during_a_blocking_call(check, server):
    printed = check(
        """
with grpc.insecure_channel(sys.argv[1]) as channel:
    calls = calls_pb2_grpc.CallsStub(channel)
    calls.Unary(calls_pb2.Request())
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        calls.Unary(calls_pb2.Request(sleep_ms=20_000))
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 10)
    calls.Unary(calls_pb2.Request())
""",
        server,
    )
    assert printed.strip() == "interrupted True"


def test_ctrl_c_during_a_blocking_stream(check, server):
    printed = check(
        """
with grpc.insecure_channel(sys.argv[1]) as channel:
    responses = calls_pb2_grpc.CallsStub(channel).ServerStream(calls_pb2.Request(responses=1, sleep_ms=20_000))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        next(responses)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 10)
    responses.cancel()
""",
        server,
    )
    assert printed.strip() == "interrupted True"


@pytest.mark.parametrize("interface", ["blocking", "aio"])
def test_idle_process_uses_no_cpu(check, server, interface):
    """A process with an idle channel and an idle server uses less than 1 % of a core."""
    wait = "start = time.process_time(); {sleep}; print('used', time.process_time() - start)"
    if interface == "blocking":
        source = (
            "with servers.blocking() as own, grpc.insecure_channel(sys.argv[1]) as channel:\n"
            "    calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())\n"
            f"    time.sleep(0.5); {wait.format(sleep='time.sleep(3)')}\n"
        )
    else:
        source = (
            "async def main():\n"
            "    async with servers.aio() as own, grpc.aio.insecure_channel(sys.argv[1]) as channel:\n"
            "        await calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())\n"
            f"        await asyncio.sleep(0.5); {wait.format(sleep='await asyncio.sleep(3)')}\n"
            "asyncio.run(main())\n"
        )
    used = float(re.search(r"used (\S+)", check(source, server))[1])
    assert used < 0.03, f"{used} s of CPU time in 3 s"


def test_descriptors_of_closed_channels_are_closed(blocking_server):
    """Each channel of a hundred is closed with its connection."""
    process = psutil.Process()

    def call():
        with grpc.insecure_channel(blocking_server) as channel:
            calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())

    call()
    before = process.num_fds()
    for _ in range(100):
        call()
    # A connection may close a little later than its channel.
    assert process.num_fds() < before + 50
