"""grpcio's asyncio interface, `grpc.aio`."""

from thalweg.grpc.aio._errors import AioRpcError
