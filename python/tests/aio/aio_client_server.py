"""Server for the tests of clients: a process of its own, on grpcio, so that both packages are tested against the same.

Prints its port, and serves until its standard input ends.
"""

import asyncio
import collections
import sys

import grpc

SERVICE = "test.Service"


async def echo(request, context):
    """Returns the request. The request's metadata comes back, and the initial and trailing metadata are set."""
    pairs = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-")]
    await context.send_initial_metadata([("initial", "i"), ("initial-bin", b"\0\xff"), *pairs])
    context.set_trailing_metadata([("trailing", "t"), ("trailing-bin", b"\1\xfe")])
    return request


async def fail(request, context):
    context.set_trailing_metadata([("reason", "asked")])
    await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing: " + request.decode())


async def slow(request, context):
    """Sends its initial metadata at once, and the response after a while."""
    await context.send_initial_metadata([("initial", "early")])
    await asyncio.sleep(float(request or b"30"))
    return request


async def silent(request, context):
    note_end(context)
    await asyncio.sleep(float(request or b"30"))
    return request


_starts = collections.defaultdict(asyncio.Event)
_ends = collections.defaultdict(asyncio.Event)


def note_end(context):
    """Notes that a call with the metadata `x-id` has started, and when it ends."""
    for key, value in context.invocation_metadata():
        if key == "x-id":
            _starts[value].set()
            context.add_done_callback(lambda _: _ends[value].set())


async def wait_for_start(request, context):
    """Waits until the call with this `x-id` has started."""
    await _starts[request.decode()].wait()
    return request


async def wait_for_end(request, context):
    """Waits until the call with this `x-id` has ended."""
    await _ends[request.decode()].wait()
    return request


async def remaining(request, context):
    time_remaining = context.time_remaining()
    return b"" if time_remaining is None else str(time_remaining).encode()


async def count(request, context):
    """Sends as many responses as the request says, then fails if it ends with `!`, or waits if it ends with `.`."""
    text = request.decode()
    note_end(context)
    await context.send_initial_metadata([("initial", "i")])
    for number in range(int(text.rstrip("!."))):
        yield str(number).encode()
    context.set_trailing_metadata([("trailing", "t")])
    if text.endswith("!"):
        await context.abort(grpc.StatusCode.DATA_LOSS, "counted wrongly")
    if text.endswith("."):
        await asyncio.sleep(30)


async def join(request_iterator, context):
    """Returns all requests, joined by commas."""
    await context.send_initial_metadata([("initial", "i")])
    parts = []
    async for request in request_iterator:
        if request == b"fail":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a bad request")
        parts.append(request)
    context.set_trailing_metadata([("trailing", "t")])
    return b",".join(parts)


async def chat(request_iterator, context):
    """Returns each request when it comes."""
    note_end(context)
    await context.send_initial_metadata([("initial", "i")])
    async for request in request_iterator:
        if request == b"fail":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a bad request")
        yield request
    context.set_trailing_metadata([("trailing", "t")])


HANDLERS = {
    "Echo": grpc.unary_unary_rpc_method_handler(echo),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Slow": grpc.unary_unary_rpc_method_handler(slow),
    "Silent": grpc.unary_unary_rpc_method_handler(silent),
    "Remaining": grpc.unary_unary_rpc_method_handler(remaining),
    "WaitForStart": grpc.unary_unary_rpc_method_handler(wait_for_start),
    "WaitForEnd": grpc.unary_unary_rpc_method_handler(wait_for_end),
    "Count": grpc.unary_stream_rpc_method_handler(count),
    "Join": grpc.stream_unary_rpc_method_handler(join),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
}


async def main():
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    server.add_registered_method_handlers(SERVICE, HANDLERS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, HANDLERS),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(main())
