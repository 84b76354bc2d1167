"""Names that other packages import from this module of grpcio."""

from thalweg.grpc.aio._base import (  # noqa: F401
    Call,
    RpcContext,
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
)
