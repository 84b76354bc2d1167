"""`THALWEG_TEST_GRPC=thalweg` runs the tests on this package, otherwise they run on grpcio."""

import os

if os.environ.get("THALWEG_TEST_GRPC") == "thalweg":
    import thalweg.grpc

    thalweg.grpc.install()

import socket

import pytest


@pytest.fixture
def free_port():
    """A loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
