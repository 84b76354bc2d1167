"""Serves gRPC's interoperability tests: `interop_server.py blocking|aio [PORT]`."""

import sys

import chosen  # noqa: F401: before `grpc`
import protos

protos.use()

import interop_servicers  # noqa: E402
import serving  # noqa: E402

if __name__ == "__main__":
    interface, *port = sys.argv[1:]
    serving.run(interface, interop_servicers, *port)
