"""gRPC's interoperability tests in both directions: against grpcio in another process, and against grpc-go.

xtask names grpc-go's programs in `THALWEG_INTEROP_CLIENT` and `THALWEG_INTEROP_SERVER`.
"""

import os
import socket
import subprocess
import sys
import time

import interop_cases
import interop_servicers
import processes
import pytest
import servers

INTERFACES = ("aio", "blocking")
CASES = pytest.mark.parametrize("case", interop_cases.CASES)
GO_CLIENT, GO_SERVER = "THALWEG_INTEROP_CLIENT", "THALWEG_INTEROP_SERVER"


@pytest.fixture(scope="module", params=INTERFACES)
def grpcio_server(request):
    with processes.Server("grpcio", "interop_server.py", request.param) as server:
        yield server.address


@pytest.mark.parametrize("interface", INTERFACES)
@CASES
def test_client_with_servers_of_grpcio(interface, case, grpcio_server):
    interop_cases.CLIENTS[interface](grpcio_server).run(case)


@pytest.fixture(scope="module")
def peers_results():
    """What grpcio's clients print, by the interfaces of the server and of the client."""
    return {}


def _results_of_grpcio(results, served, interface):
    if (served, interface) not in results:
        add = {"aio": interop_servicers.add_aio, "blocking": interop_servicers.add_blocking}[served]
        with servers.BOTH[served](add) as address:
            command = [sys.executable, str(processes.SUPPORT / "interop_client.py"), interface, address]
            environment = processes.environment("grpcio")
            results[served, interface] = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=processes.LIMIT
            )
    return results[served, interface]


@pytest.mark.parametrize("served", INTERFACES)
@pytest.mark.parametrize("interface", INTERFACES)
@CASES
def test_server_with_clients_of_grpcio(served, interface, case, peers_results):
    ended = _results_of_grpcio(peers_results, served, interface)
    assert f"ok {case}" in ended.stdout.splitlines(), ended.stderr


def _program(variable):
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no program of grpc-go's")
    return path


@pytest.fixture(scope="module")
def go_server():
    program = _program(GO_SERVER)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = subprocess.Popen([program, "--port", str(port)])
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "grpc-go's server does not listen"
                time.sleep(0.05)
        yield f"localhost:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("interface", INTERFACES)
@CASES
def test_client_with_server_of_grpc_go(interface, case, go_server):
    interop_cases.CLIENTS[interface](go_server).run(case)


@pytest.mark.parametrize("served", INTERFACES)
@CASES
def test_server_with_client_of_grpc_go(served, case):
    program = _program(GO_CLIENT)
    add = {"aio": interop_servicers.add_aio, "blocking": interop_servicers.add_blocking}[served]
    with servers.BOTH[served](add) as address:
        host, port = address.rsplit(":", 1)
        command = [program, "--server_host", host, "--server_port", port, "--test_case", case]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=processes.LIMIT)
    assert ended.returncode == 0, ended.stderr
