"""Helpers for the tests of asyncio clients."""

import asyncio
import functools
import subprocess
import sys
from pathlib import Path

import grpc

SERVICE = "/test.Service/"


def in_loop(test):
    """Runs a coroutine function as a test, in an event loop of its own, for at most 10 seconds."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        async def limited():
            await asyncio.wait_for(test(*args, **kwargs), 10)

        asyncio.run(limited())

    return run


class Service:
    """The methods of the test server, on a channel."""

    def __init__(self, channel):
        self.channel = channel

    def unary(self, name, **serializers):
        return self.channel.unary_unary(SERVICE + name, **serializers)

    @property
    def count(self):
        return self.channel.unary_stream(SERVICE + "Count")

    @property
    def join(self):
        return self.channel.stream_unary(SERVICE + "Join")

    @property
    def chat(self):
        return self.channel.stream_stream(SERVICE + "Chat")

    async def wait_for_start(self, name):
        """Waits until the call with the metadata `x-id` and this name has started at the server."""
        await self.unary("WaitForStart")(name.encode())

    async def wait_for_end(self, name):
        """Waits until the call with the metadata `x-id` and this name has ended at the server."""
        await self.unary("WaitForEnd")(name.encode())


def start_server():
    """Starts the test server. Returns its process and address."""
    script = Path(__file__).with_name("aio_client_server.py")
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(process.stdout.readline())
    return process, f"127.0.0.1:{port}"


async def status_of(awaitable):
    """Returns the code and details of the `AioRpcError` that an awaitable raises."""
    try:
        result = await awaitable
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"no error, but {result!r}")
