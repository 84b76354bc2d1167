"""What this package does better than grpcio, or has in addition."""

import math
import pickle
import queue
import threading
import time

import grpc
import pytest
from blocking_client import PATIENCE, call, method

pytestmark = pytest.mark.skipif(not grpc.__name__.startswith("thalweg"), reason="describes thalweg only")


def test_infinite_timeout_is_no_deadline(channel):
    for timeout in (math.inf, 1e300, 1e19):
        assert call(channel, "Echo", b"x", timeout=timeout) == b"x"
        assert method(channel, "unary_unary", "Echo").future(b"x", timeout=timeout).result(20) == b"x"
    with pytest.raises(ValueError, match="not a number"):
        call(channel, "Echo", b"x", timeout=math.nan)


def test_requests_may_be_any_iterable(channel):
    assert method(channel, "stream_unary", "Sum")([b"ab", b"c"]) == b"2 3"
    assert list(method(channel, "stream_stream", "Chat")((b"ab", b"c"))) == [b"ab", b"c"]


def test_several_threads_share_the_responses(channel):
    # With grpcio, a thread may wait forever that another one has taken the last response from.
    responses = method(channel, "unary_stream", "Count")(b"2000")
    received = queue.SimpleQueue()
    threads = [
        threading.Thread(target=lambda: [received.put(response) for response in responses]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert received.qsize() == 2000
    assert {received.get() for _ in range(2000)} == {str(number).encode() for number in range(2000)}


def test_errors_survive_pickling(channel):
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, "Fail", b"NOT_FOUND")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.code(), copy.details()) == (grpc.StatusCode.NOT_FOUND, "asked to fail")
    assert copy.trailing_metadata() == raised.value.trailing_metadata()


def test_serializer_error_is_the_cause(channel):
    with pytest.raises(grpc.RpcError) as raised:
        method(channel, "unary_unary", "Echo", request_serializer=lambda it: 1 / 0)(b"")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_unknown_compression_is_an_error(channel):
    with pytest.raises(ValueError, match="grpc.Compression"):
        call(channel, "Echo", b"x", compression=17)


def test_private_names_of_grpcio_exist():
    from grpc._channel import _InactiveRpcError, _MultiThreadedRendezvous, _Rendezvous

    assert issubclass(_InactiveRpcError, grpc.RpcError) and issubclass(_MultiThreadedRendezvous, _Rendezvous)


def test_state_changes_can_be_waited_for_and_given_up(free_port):
    from thalweg import _native
    from thalweg.grpc import _threads

    queue, thread = _threads.start_queue("test")
    channel = _native.Channel(f"127.0.0.1:{free_port}")
    states = []
    assert channel.state(False) == 0
    channel.on_state_change(queue, -1, states.append)
    given_up = channel.on_state_change(queue, 0, lambda state: states.append("given up"))
    channel.on_state_change(queue, 0, states.append)
    channel.forget_state_change(given_up)
    deadline = time.monotonic() + 20
    while states != [0] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert states == [0]
    channel.close("closed")
    assert channel.state(True) == 4
    assert channel.on_state_change(queue, 4, states.append) is None
    channel.on_state_change(queue, 0, states.append)
    with pytest.raises(ValueError, match="has the number 5"):
        channel.on_state_change(queue, 5, states.append)
    queue.close()
    thread.join(20)
    assert not thread.is_alive() and states == [0, 4, 4]
