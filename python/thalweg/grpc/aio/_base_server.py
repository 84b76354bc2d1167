"""Names that other packages import from this module of grpcio."""

from thalweg.grpc.aio._server import Server  # noqa: F401
from thalweg.grpc.aio._servicer_context import ServicerContext  # noqa: F401
