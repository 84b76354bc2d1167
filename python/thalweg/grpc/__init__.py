"""grpcio's interface on Thalweg's transport: `import thalweg.grpc as grpc`.

`install()` makes it the module `grpc` of the process, so that generated code and other packages use it unchanged.
"""

#: The version of grpcio whose interface this is. Generated code compares it with its own.
__version__ = "1.85.3"

from thalweg.grpc import _fork
from thalweg.grpc._channel import insecure_channel, secure_channel
from thalweg.grpc._connectivity import channel_ready_future
from thalweg.grpc._credentials import (
    AuthMetadataContext,
    AuthMetadataPlugin,
    AuthMetadataPluginCallback,
    CallCredentials,
    ChannelCredentials,
    ServerCertificateConfiguration,
    ServerCredentials,
    access_token_call_credentials,
    alts_channel_credentials,
    alts_server_credentials,
    composite_call_credentials,
    composite_channel_credentials,
    compute_engine_channel_credentials,
    dynamic_ssl_server_credentials,
    insecure_server_credentials,
    local_channel_credentials,
    local_server_credentials,
    metadata_call_credentials,
    ssl_channel_credentials,
    ssl_server_certificate_configuration,
    ssl_server_credentials,
    xds_channel_credentials,
    xds_server_credentials,
)
from thalweg.grpc._handlers import (
    method_handlers_generic_handler,
    stream_stream_rpc_method_handler,
    stream_unary_rpc_method_handler,
    unary_stream_rpc_method_handler,
    unary_unary_rpc_method_handler,
)
from thalweg.grpc._install import install as install
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
from thalweg.grpc._runtime_protos import protos, protos_and_services, services
from thalweg.grpc._server import server
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
from thalweg.grpc import aio as aio, experimental as experimental

__all__ = (
    "AuthMetadataContext",
    "AuthMetadataPlugin",
    "AuthMetadataPluginCallback",
    "Call",
    "CallCredentials",
    "Channel",
    "ChannelConnectivity",
    "ChannelCredentials",
    "ClientCallDetails",
    "Compression",
    "Future",
    "FutureCancelledError",
    "FutureTimeoutError",
    "GenericRpcHandler",
    "HandlerCallDetails",
    "LocalConnectionType",
    "RpcContext",
    "RpcError",
    "RpcMethodHandler",
    "Server",
    "ServerCertificateConfiguration",
    "ServerCredentials",
    "ServerInterceptor",
    "ServiceRpcHandler",
    "ServicerContext",
    "Status",
    "StatusCode",
    "StreamStreamClientInterceptor",
    "StreamStreamMultiCallable",
    "StreamUnaryClientInterceptor",
    "StreamUnaryMultiCallable",
    "UnaryStreamClientInterceptor",
    "UnaryStreamMultiCallable",
    "UnaryUnaryClientInterceptor",
    "UnaryUnaryMultiCallable",
    "access_token_call_credentials",
    "alts_channel_credentials",
    "alts_server_credentials",
    "channel_ready_future",
    "composite_call_credentials",
    "composite_channel_credentials",
    "compute_engine_channel_credentials",
    "dynamic_ssl_server_credentials",
    "insecure_channel",
    "insecure_server_credentials",
    "intercept_channel",
    "local_channel_credentials",
    "local_server_credentials",
    "metadata_call_credentials",
    "method_handlers_generic_handler",
    "protos",
    "protos_and_services",
    "secure_channel",
    "server",
    "services",
    "ssl_channel_credentials",
    "ssl_server_certificate_configuration",
    "ssl_server_credentials",
    "stream_stream_rpc_method_handler",
    "stream_unary_rpc_method_handler",
    "unary_stream_rpc_method_handler",
    "unary_unary_rpc_method_handler",
    "xds_channel_credentials",
    "xds_server_credentials",
)

_fork.register()
