"""The part of grpcio's native module that published packages use, such as grpcio-channelz and grpcio-csds."""

from thalweg._native import (
    channelz_get_channel,
    channelz_get_server,
    channelz_get_server_sockets,
    channelz_get_servers,
    channelz_get_socket,
    channelz_get_subchannel,
    channelz_get_top_channels,
)

__all__ = (
    "CompressionAlgorithm",
    "CompressionLevel",
    "channelz_get_channel",
    "channelz_get_server",
    "channelz_get_server_sockets",
    "channelz_get_servers",
    "channelz_get_socket",
    "channelz_get_subchannel",
    "channelz_get_top_channels",
    "dump_xds_configs",
)


class CompressionAlgorithm:
    """Values of the option `grpc.default_compression_algorithm`."""

    none = 0
    deflate = 1
    gzip = 2


class CompressionLevel:
    """Values of the option `grpc.default_compression_level`."""

    none = 0
    low = 1
    medium = 2
    high = 3


def dump_xds_configs() -> bytes:
    """Returns a `ClientStatusResponse` without clients: there are no xDS clients."""
    return b""
