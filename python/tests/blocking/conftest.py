"""Fixtures of the tests of the blocking interface."""

from pathlib import Path

import grpc
import pytest
from blocking_client import running_server

_FOLDER = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def ports():
    """The ports of the server, without and with TLS."""
    with running_server() as ports:
        yield ports


@pytest.fixture
def port(ports):
    """The port of the server without TLS."""
    return ports[0]


@pytest.fixture
def secure_target(ports):
    """The target with TLS, and the credentials of channels to it."""
    root = (_FOLDER / "certificates" / "ca.pem").read_bytes()
    return f"localhost:{ports[1]}", grpc.ssl_channel_credentials(root)


@pytest.fixture
def channel(port):
    """A channel to the server."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
