"""Measures one load on a stack: `client.py LOAD ADDRESS SECONDS`. It prints calls or messages per second.

`memory` prints the resident megabytes of a process with one channel that made a call, `idle` the milliseconds of CPU
time that such a process uses per second, `import` the milliseconds that importing the package takes.
"""

import asyncio
import os
import sys
import threading
import time

_start = time.perf_counter()
import stack

import helloworld_pb2  # noqa: E402

if stack.STACK == "grpclib":
    import grpclib.client
else:
    import grpc
    import grpc.aio
    import helloworld_pb2_grpc
IMPORT_MS = (time.perf_counter() - _start) * 1000

REQUEST = helloworld_pb2.HelloRequest
#: Messages of a measured stream.
STREAM = 2000
#: Seconds before a window.
WARM_UP = 0.3


class Grpclib:
    """Calls by grpclib's own multicallables, which its generated code creates."""

    def __init__(self, address):
        host, port = address.split(":")
        self.channel = grpclib.client.Channel(host, int(port))
        reply, path = helloworld_pb2.HelloReply, "/helloworld.Greeter/"
        self.SayHello = grpclib.client.UnaryUnaryMethod(self.channel, path + "SayHello", REQUEST, reply)
        self._replies = grpclib.client.UnaryStreamMethod(self.channel, path + "SayHelloStreamReply", REQUEST, reply)
        self._bidi = grpclib.client.StreamStreamMethod(self.channel, path + "SayHelloBidiStream", REQUEST, reply)

    async def receive(self):
        async with self._replies.open() as stream:
            await stream.send_message(REQUEST(name=str(STREAM)), end=True)
            return sum([1 async for _ in stream])

    async def send(self):
        async with self._bidi.open() as stream:
            request = REQUEST(name="x" * 98)
            for _ in range(STREAM):
                await stream.send_message(request)
            await stream.end()
            return int((await stream.recv_message()).message)

    async def close(self):
        self.channel.close()


class Aio:
    """Calls by the stubs that grpcio-tools generates."""

    def __init__(self, address):
        self.channel = grpc.aio.insecure_channel(address, options=stack.LARGE)
        self.stub = helloworld_pb2_grpc.GreeterStub(self.channel)
        self.SayHello = self.stub.SayHello

    async def receive(self):
        count = 0
        async for _ in self.stub.SayHelloStreamReply(REQUEST(name=str(STREAM))):
            count += 1
        return count

    async def send(self):
        call = self.stub.SayHelloBidiStream()
        request = REQUEST(name="x" * 98)
        for _ in range(STREAM):
            await call.write(request)
        await call.done_writing()
        return int((await call.read()).message)

    async def close(self):
        await self.channel.close()


async def _rate(seconds, workers, operation):
    """Runs `operation`, which returns how many calls or messages it made, in a loop of each worker."""
    done, until = 0, time.perf_counter() + WARM_UP
    counts = False

    async def work():
        nonlocal done
        while time.perf_counter() < until:
            count = await operation()
            if counts:
                done += count

    await asyncio.gather(*(work() for _ in range(workers)))
    counts, start = True, time.perf_counter()
    until = start + seconds
    await asyncio.gather(*(work() for _ in range(workers)))
    return done / (time.perf_counter() - start)


async def aio(load, address, seconds):
    client = (Grpclib if stack.STACK == "grpclib" else Aio)(address)
    request = REQUEST(name="x" * 1_000_000 if load == "aio-large" else "Ada")

    async def call():
        await client.SayHello(request)
        return 1

    async def receive():
        return await client.receive()

    async def send():
        count = await client.send()
        assert count == STREAM
        return count

    operation = {"aio-receive": receive, "aio-send": send}.get(load, call)
    rate = await _rate(seconds, 100 if load == "aio-100" else 1, operation)
    await client.close()
    return rate


def threads(load, address, seconds):
    number = int(load.split("-")[1])
    with grpc.insecure_channel(address, options=stack.LARGE) as channel:
        call = helloworld_pb2_grpc.GreeterStub(channel).SayHello
        request = REQUEST(name="Ada")

        def work(until, counts):
            count = 0
            while time.perf_counter() < until:
                call(request)
                count += 1
            counts.append(count)

        def run(duration):
            counts, start = [], time.perf_counter()
            workers = [threading.Thread(target=work, args=(start + duration, counts)) for _ in range(number)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            return sum(counts) / (time.perf_counter() - start)

        run(WARM_UP)
        return run(seconds)


async def resting(load, address, seconds):
    client = (Grpclib if stack.STACK == "grpclib" else Aio)(address)
    await client.SayHello(REQUEST(name="Ada"))
    await asyncio.sleep(0.5)
    if load == "memory":
        with open("/proc/self/statm") as statm:
            figure = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    else:
        start = time.process_time()
        await asyncio.sleep(seconds)
        figure = (time.process_time() - start) / seconds * 1000
    await client.close()
    return figure


if __name__ == "__main__":
    load, address, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if load == "import":
        print(IMPORT_MS)
    elif load in ("memory", "idle"):
        print(asyncio.run(resting(load, address, seconds)))
    elif load.startswith("aio"):
        print(asyncio.run(aio(load, address, seconds)))
    else:
        print(threads(load, address, seconds))
