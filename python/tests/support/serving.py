"""A program that serves until its standard input ends. It prints its port once it is ready."""

import asyncio
import concurrent.futures
import sys

import grpc


def run(interface, services, port="0"):
    """Serves by an interface the services that `services.add_blocking` or `services.add_aio` adds."""
    if interface == "aio":
        asyncio.run(_aio(services.add_aio, port))
    else:
        _blocking(services.add_blocking, port)


def _blocking(add, port):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8))
    add(server)
    bound = server.add_insecure_port(f"localhost:{port}")
    server.start()
    print(bound, flush=True)
    sys.stdin.read()
    server.stop(None).wait()


async def _aio(add, port):
    server = grpc.aio.server()
    add(server)
    bound = server.add_insecure_port(f"localhost:{port}")
    await server.start()
    print(bound, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)
