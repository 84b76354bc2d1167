"""Modules generated from .proto files at run time, by grpcio-tools."""

import importlib
from types import ModuleType
from typing import Any


def _generate(function: str, protobuf_path: str) -> Any:
    try:
        protoc = importlib.import_module("grpc_tools.protoc")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "grpc_tools":
            raise
        raise NotImplementedError(f"grpc.{function} needs the package grpcio-tools; install it") from None
    return getattr(protoc, "_" + function)(protobuf_path)


def protos(protobuf_path: str) -> ModuleType:
    """Returns the module of a .proto file's messages, as in its `_pb2.py`.

    Args:
        protobuf_path: Path of the file, relative to an entry of `sys.path`, as those of its imports.

    Raises:
        NotImplementedError: grpcio-tools is not installed.
    """
    return _generate("protos", protobuf_path)


def services(protobuf_path: str) -> ModuleType:
    """Returns the module of a .proto file's services, as in its `_pb2_grpc.py`. See `protos`.

    The module imports `grpc`. It uses this package if `install` was called, and grpcio otherwise.
    """
    return _generate("services", protobuf_path)


def protos_and_services(protobuf_path: str) -> "tuple[ModuleType, ModuleType]":
    """Returns the results of `protos` and `services`."""
    return _generate("protos_and_services", protobuf_path)
