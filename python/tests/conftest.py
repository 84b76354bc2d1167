"""Fixtures of all suites. `THALWEG_TEST_GRPC` selects the tested implementation, see `support/chosen.py`."""

import socket
import sys
from pathlib import Path

#: Folders with modules that suites import. Their names differ.
for _folder in ("aio", "blocking", "support"):
    sys.path.insert(0, str(Path(__file__).resolve().parent / _folder))

import chosen  # noqa: E402: it must come before anything that imports `grpc`
import protos  # noqa: E402

#: The folder with the compiled .proto files. It is removed at the end of the process.
_COMPILED = protos.compile_all()

import calls_pb2_grpc  # noqa: E402
import grpc  # noqa: E402
import helloworld_pb2_grpc  # noqa: E402
import pytest  # noqa: E402
import servers  # noqa: E402


def pytest_configure(config):
    """Exceptions that nothing handles fail the tests on Thalweg; grpcio has some in its own threads."""
    if chosen.IS_THALWEG:
        for name in ("PytestUnraisableExceptionWarning", "PytestUnhandledThreadExceptionWarning"):
            config.addinivalue_line("filterwarnings", f"error::pytest.{name}")


def pytest_report_header(config):
    return f"grpc: {grpc.__file__}, {grpc.__version__}"


def pytest_collection_modifyitems(config, items):
    """Skips tests of one implementation on the other, and long ones unless `-m` names them."""
    wants_long = "long" in config.getoption("-m")
    for item in items:
        for name in chosen.NAMES:
            if item.get_closest_marker(f"{name}_only") and name != chosen.NAME:
                item.add_marker(pytest.mark.skip(reason=f"describes {name} only"))
        if item.get_closest_marker("long") and not wants_long:
            item.add_marker(pytest.mark.skip(reason="takes long; run `pytest -m long`"))


@pytest.fixture(scope="session")
def implementation():
    """The name of the tested implementation."""
    return chosen.NAME


@pytest.fixture
def free_port():
    """A loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def blocking_server():
    """The address of a server of the blocking interface with all services."""
    with servers.blocking() as address:
        yield address


@pytest.fixture
def aio_server_in_thread():
    """The address of a server of the asyncio interface on a loop of its own."""
    with servers.aio_in_thread() as address:
        yield address


@pytest.fixture(params=sorted(servers.BOTH))
def any_server(request):
    """The address of a server of each interface in turn."""
    with servers.BOTH[request.param]() as address:
        yield address


@pytest.fixture
def channel(any_server):
    """A blocking channel to a server of each interface in turn."""
    with grpc.insecure_channel(any_server) as channel:
        yield channel


@pytest.fixture
def calls(channel):
    """A blocking stub of `Calls`."""
    return calls_pb2_grpc.CallsStub(channel)


@pytest.fixture
def greeter(channel):
    """A blocking stub of `Greeter`."""
    return helloworld_pb2_grpc.GreeterStub(channel)


@pytest.fixture
async def aio_channel(any_server):
    """An asyncio channel to a server of each interface in turn."""
    async with grpc.aio.insecure_channel(any_server) as channel:
        yield channel


@pytest.fixture
async def aio_calls(aio_channel):
    """An asyncio stub of `Calls`."""
    return calls_pb2_grpc.CallsStub(aio_channel)


@pytest.fixture
async def aio_greeter(aio_channel):
    """An asyncio stub of `Greeter`."""
    return helloworld_pb2_grpc.GreeterStub(aio_channel)
