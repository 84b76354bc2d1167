"""grpcio's interface on Thalweg's transport: `import thalweg.grpc as grpc`.

`install()` makes it the module `grpc` of the process, so that generated code and other packages use it unchanged.
"""

__version__ = "1.85.0"

from thalweg.grpc._channel import insecure_channel
from thalweg.grpc._connectivity import channel_ready_future
from thalweg.grpc._handlers import (
    method_handlers_generic_handler,
    stream_stream_rpc_method_handler,
    stream_unary_rpc_method_handler,
    unary_stream_rpc_method_handler,
    unary_unary_rpc_method_handler,
)
from thalweg.grpc._install import install
from thalweg.grpc._interceptor import intercept_channel
from thalweg.grpc._interfaces import (
    Call,
    Channel,
    Future,
    GenericRpcHandler,
    RpcContext,
    Server,
    ServerInterceptor,
    ServiceRpcHandler,
    ServicerContext,
    StreamStreamClientInterceptor,
    StreamStreamMultiCallable,
    StreamUnaryClientInterceptor,
    StreamUnaryMultiCallable,
    UnaryStreamClientInterceptor,
    UnaryStreamMultiCallable,
    UnaryUnaryClientInterceptor,
    UnaryUnaryMultiCallable,
)
from thalweg.grpc._handlers import RpcMethodHandler
from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import (
    ChannelConnectivity,
    ClientCallDetails,
    Compression,
    FutureCancelledError,
    FutureTimeoutError,
    HandlerCallDetails,
    LocalConnectionType,
    RpcError,
    Status,
)
from thalweg.grpc import aio
