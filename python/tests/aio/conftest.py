"""Fixtures of the tests of asyncio clients."""

import pytest

from aio_client_support import start_server


@pytest.fixture(scope="session")
def address():
    """Address of the test server."""
    process, address = start_server()
    yield address
    process.stdin.close()
    process.wait(10)
