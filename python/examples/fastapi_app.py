"""A web service that calls a gRPC backend, on FastAPI and Thalweg.

Generate the stubs from `python/tests/protos/helloworld.proto`, start the backend at the address in `GREETER`, and run
`uvicorn fastapi_app:app`. `GET /hello/Ada` returns `{"message": "Hello, Ada!"}`, and `GET /hellos/Ada` streams lines.

One channel serves all requests: it is created on the event loop that serves them, and its calls share connections.
"""

import contextlib
import os

import thalweg.grpc

thalweg.grpc.install()  # Remove these two lines, and the program runs on grpcio.

import grpc  # noqa: E402
import helloworld_pb2  # noqa: E402
import helloworld_pb2_grpc  # noqa: E402
from fastapi import FastAPI, HTTPException, Request  # noqa: E402
from fastapi.responses import StreamingResponse  # noqa: E402

#: Seconds that the backend may take.
TIMEOUT = 2.0

#: HTTP statuses of the gRPC statuses that a client can act on. All others are 502.
HTTP_STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI):
    async with grpc.aio.insecure_channel(os.environ.get("GREETER", "localhost:50051")) as channel:
        app.state.greeter = helloworld_pb2_grpc.GreeterStub(channel)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/hello/{name}")
async def hello(name: str, request: Request):
    """Makes one call. A client that goes away cancels it."""
    try:
        reply = await request.app.state.greeter.SayHello(helloworld_pb2.HelloRequest(name=name), timeout=TIMEOUT)
    except grpc.aio.AioRpcError as error:
        raise HTTPException(HTTP_STATUSES.get(error.code(), 502), error.details()) from error
    return {"message": reply.message}


@app.get("/hellos/{name}")
async def hellos(name: str, request: Request):
    """Forwards a stream of responses, a line each."""
    replies = request.app.state.greeter.SayHelloStreamReply(helloworld_pb2.HelloRequest(name=name), timeout=TIMEOUT)

    async def lines():
        async for reply in replies:
            yield reply.message + "\n"

    return StreamingResponse(lines(), media_type="text/plain")
