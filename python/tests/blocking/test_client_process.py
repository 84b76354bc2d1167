"""Signals, forks, the end of the interpreter, and garbage collection."""

import grpc
import pytest
from blocking_client import active, run, until

START = """
import sys, threading, time, gc, os, signal, weakref
import grpc
target = f"127.0.0.1:{sys.argv[1]}"
channel = grpc.insecure_channel(target)
def method(kind, name, **serializers):
    return getattr(channel, kind)("/test.Client/" + name, **serializers)
echo = method("unary_unary", "Echo")
sleep = method("unary_unary", "Sleep")
def check(condition, text):
    if not condition:
        sys.exit(text)
"""


def check(port, code, output, timeout=60):
    finished = run(START + code, port, timeout=timeout)
    assert (finished.returncode, finished.stdout.split()) == (0, output.split()), finished.stderr
    return finished.stderr


@pytest.mark.parametrize(
    "invoke",
    [
        "sleep(b'20')",
        "sleep.with_call(b'20')",
        "sleep.future(b'20').result()",
        "next(method('unary_stream', 'Forever')(b'20'))",
        "method('stream_unary', 'Sum')(iter(lambda: time.sleep(20), 1))",
        "grpc.channel_ready_future(grpc.insecure_channel('127.0.0.1:1')).result()",
    ],
)
def test_keyboard_interrupt_ends_a_blocking_call(port, channel, invoke):
    before = active(channel)
    check(
        port,
        f"""
echo(b"x")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    {invoke}
except KeyboardInterrupt:
    print("interrupted")
check(time.monotonic() - started < 5, "late")
check(echo(b"y") == b"y", "no further calls")
""",
        "interrupted",
    )
    until(lambda: active(channel) == before)


def test_keyboard_interrupt_cancels_a_unary_call(port, channel):
    before = active(channel)
    check(
        port,
        """
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
running = int(method("unary_unary", "Active")(b""))
try:
    sleep(b"20")
except KeyboardInterrupt:
    print("interrupted")
deadline = time.monotonic() + 10
while int(method("unary_unary", "Active")(b"")) > running:
    check(time.monotonic() < deadline, "the call goes on")
""",
        "interrupted",
    )
    assert active(channel) == before


def test_other_signal_handlers_run_during_a_call(port):
    check(
        port,
        """
signal.signal(signal.SIGALRM, lambda *_: print("alarm", echo(b"inner").decode(), flush=True))
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(sleep(b"1").decode())
""",
        "alarm inner 1",
    )


def test_signal_handler_that_raises_leaves_a_stream(port):
    """As in grpcio, whose applications cannot go on reading, however."""
    check(
        port,
        """
class Alarm(Exception):
    pass
def ring(*_):
    raise Alarm()
signal.signal(signal.SIGALRM, ring)
responses = method("unary_stream", "Forever")(b"1")
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    next(responses)
except Alarm:
    print("alarm", responses.is_active())
if grpc.__name__ == "thalweg.grpc":
    check(next(responses) == b"again", "no more responses")
responses.cancel()
""",
        "alarm True",
    )


@pytest.mark.parametrize(
    "state",
    [
        "futures = [sleep.future(b'20') for _ in range(10)]",
        "threading.Thread(target=sleep, args=(b'20',), daemon=True).start(); time.sleep(0.3)",
        "responses = method('unary_stream', 'Forever')(b'0.001'); next(responses)",
        "threading.Thread(target=list, args=(method('unary_stream', 'Forever')(b'0.001'),), daemon=True).start()",
        "responses = method('stream_stream', 'Chat')(iter(lambda: time.sleep(0.001) or b'x', 1)); next(responses)",
        "sleep.future(b'0.3').add_done_callback(lambda it: time.sleep(20)); time.sleep(0.6)",
        "sleep.future(b'20').add_done_callback(print)",
        "channel.subscribe(lambda state: None, try_to_connect=True)",
        "grpc.channel_ready_future(grpc.insecure_channel('127.0.0.1:1'))",
        "channel.close()",
    ],
)
def test_interpreter_ends_with_calls_in_flight(port, state):
    stderr = check(port, f"echo(b'x')\n{state}\nprint('end')\n", "end", timeout=15)
    assert "panicked" not in stderr and "Fatal" not in stderr, stderr


def test_exit_handlers_can_make_calls(port):
    check(
        port,
        """
import atexit
echo(b"x")
atexit.register(lambda: print(echo(b"last").decode(), echo.future(b"one").result(10).decode()))
""",
        "last one",
    )


def test_cycles_are_collected(port):
    check(
        port,
        """
class Stub:
    def __init__(self):
        self.channel = grpc.insecure_channel(target)
        self.unary = self.channel.unary_unary("/test.Client/Echo", response_deserializer=self.read)
        self.stream = self.channel.unary_stream("/test.Client/Count", response_deserializer=self.read)
        self.channel.subscribe(self.changed, try_to_connect=True)
        self.intercepted = grpc.intercept_channel(self.channel, Interceptor(self))
        self.echo = self.intercepted.unary_unary("/test.Client/Echo")
    def read(self, data):
        return data
    def changed(self, state):
        pass
class Interceptor(grpc.UnaryUnaryClientInterceptor):
    def __init__(self, stub):
        self.stub = stub
    def intercept_unary_unary(self, continuation, details, request):
        return continuation(details, request)
def use():
    stub = Stub()
    stub.keep = [stub.unary(b"x"), stub.unary.with_call(b"x"), stub.echo(b"x"), list(stub.stream(b"3"))]
    stub.future = stub.unary.future(b"x")
    stub.future.add_done_callback(stub.changed)
    stub.future.result(10)
    stub.channel.unsubscribe(stub.changed)
    try:
        stub.channel.unary_unary("/test.Client/Fail")(b"NOT_FOUND")
    except grpc.RpcError as error:
        stub.error = error
    return weakref.ref(stub)
stub = use()
deadline = time.monotonic() + 10
while stub() is not None and time.monotonic() < deadline:
    gc.collect()
    time.sleep(0.05)
print(stub())
""",
        "None",
    )


@pytest.mark.skipif(not grpc.__name__.startswith("thalweg"), reason="grpcio needs GRPC_ENABLE_FORK_SUPPORT")
class TestFork:
    """Parent and child both use a channel that was there before."""

    def test_child_uses_an_inherited_channel(self, port):
        check(
            port,
            """
stop = threading.Event()
def calls():
    while not stop.is_set():
        echo(b"x")
threads = [threading.Thread(target=calls) for _ in range(4)]
for thread in threads:
    thread.start()
inherited = sleep.future(b"20")
for _ in range(10):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            check(echo(b"child") == b"child", "echo")
            check(list(method("unary_stream", "Count")(b"3")) == [b"0", b"1", b"2"], "count")
            check(method("stream_unary", "Sum")(iter([b"x"])) == b"1 1", "sum")
            ended = threading.Event()
            future = echo.future(b"x")
            future.add_done_callback(lambda it: ended.set())
            check(future.result(10) == b"x" and ended.wait(10), "callbacks")
            grpc.channel_ready_future(channel).result(10)
            try:
                inherited.result()
            except RuntimeError as error:
                check("parent process" in str(error), str(error))
                code = 0
            channel.close()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    check(status == 0, f"child: {status}")
check(echo(b"parent") == b"parent", "parent")
stop.set()
for thread in threads:
    thread.join()
print("done")
""",
            "done",
        )

    def test_child_drops_an_inherited_call_and_keeps_its_own(self, port):
        check(
            port,
            """
responses = method("unary_stream", "Count")(b"3")
time.sleep(0.3)
child = os.fork()
if child == 0:
    own = sleep.future(b"20")
    del responses
    channel.close()
    ended = threading.Event()
    own.add_done_callback(lambda it: ended.set())
    os._exit(0 if ended.wait(10) and own.code() is grpc.StatusCode.CANCELLED else 1)
check(os.waitpid(child, 0)[1] == 0, "the child's call goes on")
print(list(responses) == [b"0", b"1", b"2"])
""",
            "True",
        )

    def test_child_ends_by_itself(self, port):
        check(
            port,
            """
import multiprocessing
echo(b"x")
def work(number):
    return number, echo(str(number).encode())
with multiprocessing.get_context("fork").Pool(3) as pool:
    results = pool.map(work, range(20))
print(all(str(number).encode() == echoed for number, echoed in results))
""",
            "True",
        )
