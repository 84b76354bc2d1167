"""Serves the services of the tests: `calls_server.py blocking|aio [PORT]`."""

import sys

import chosen  # noqa: F401: before `grpc`
import protos

protos.use()

import servicers  # noqa: E402
import serving  # noqa: E402

if __name__ == "__main__":
    interface, *port = sys.argv[1:]
    serving.run(interface, servicers, *port)
