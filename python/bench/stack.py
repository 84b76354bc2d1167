"""Selects the measured stack, before anything imports `grpc`, and makes requests.

`THALWEG_BENCH_STACK` is `thalweg`, `grpcio` or `grpclib`.
"""

import os
import sys

STACK = os.environ["THALWEG_BENCH_STACK"]
#: The compiled .proto files.
sys.path.insert(0, os.environ["THALWEG_BENCH_PROTOS"])

if STACK == "thalweg":
    import thalweg.grpc

    thalweg.grpc.install()

#: Options of channels and servers for messages of several megabytes.
LARGE = (("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20))
