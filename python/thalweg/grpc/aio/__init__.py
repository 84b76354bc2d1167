"""grpcio's asyncio interface, `grpc.aio`."""

from thalweg.grpc.aio._base import (
    Call,
    Channel,
    RpcContext,
    StreamStreamCall,
    StreamStreamMultiCallable,
    StreamUnaryCall,
    StreamUnaryMultiCallable,
    UnaryStreamCall,
    UnaryStreamMultiCallable,
    UnaryUnaryCall,
    UnaryUnaryMultiCallable,
)
from thalweg.grpc.aio._channel import ChannelArgumentType, insecure_channel, secure_channel
from thalweg.grpc.aio._eof import EOF
from thalweg.grpc.aio._errors import AbortError, AioRpcError, BaseError, InternalError, UsageError
from thalweg.grpc.aio._interceptor import (
    ClientCallDetails,
    ClientInterceptor,
    InterceptedUnaryUnaryCall,
    StreamStreamClientInterceptor,
    StreamUnaryClientInterceptor,
    UnaryStreamClientInterceptor,
    UnaryUnaryClientInterceptor,
)
from thalweg.grpc.aio._loops import init_grpc_aio, shutdown_grpc_aio
from thalweg.grpc.aio._metadata import Metadata
from thalweg.grpc.aio._server import Server, ServerInterceptor, server
from thalweg.grpc.aio._servicer_context import ServicerContext
