"""grpcio's asyncio interface, `grpc.aio`."""

from thalweg.grpc.aio._eof import EOF
from thalweg.grpc.aio._errors import AbortError, AioRpcError, BaseError, InternalError, UsageError
from thalweg.grpc.aio._server import Server, ServerInterceptor, server
from thalweg.grpc.aio._servicer_context import ServicerContext
