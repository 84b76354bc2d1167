"""Servers of both interfaces in this process."""

import asyncio
import concurrent.futures
import contextlib
import threading

import grpc
import servicers


@contextlib.contextmanager
def blocking(add=servicers.add_blocking, workers=8, **options):
    """Serves by threads and returns the address."""
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=workers)
    server = grpc.server(pool, **options)
    add(server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()
        pool.shutdown()


@contextlib.asynccontextmanager
async def aio(add=servicers.add_aio, **options):
    """Serves on the running event loop and returns the address."""
    server = grpc.aio.server(**options)
    add(server)
    port = server.add_insecure_port("localhost:0")
    await server.start()
    try:
        yield f"localhost:{port}"
    finally:
        await server.stop(None)


@contextlib.contextmanager
def aio_in_thread(add=servicers.add_aio, **options):
    """Serves on an event loop of another thread and returns the address."""
    started: "concurrent.futures.Future[str]" = concurrent.futures.Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve():
        async with aio(add, **options) as address:
            started.set_result(address)
            await stop.wait()

    def run():
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="aio-server")
    thread.start()
    try:
        yield started.result(timeout=30)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join()


#: A server of each interface, for tests with a client outside of its loop.
BOTH = {"blocking": blocking, "aio": aio_in_thread}
