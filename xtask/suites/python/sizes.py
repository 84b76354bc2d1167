"""The message sizes that both directions use: around a frame's 16 KiB, around the first 64 KiB window, and large."""

import grpc

SIZES = [0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_500_000, 4 << 20]

COMPRESSION = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
