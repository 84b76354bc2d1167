"""Types of the interface, as mypy sees them."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.thalweg_only

pytest.importorskip("mypy")

_PROGRAM = """
import thalweg.grpc as grpc

def authenticate(context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
    callback(((context.method_name, "value"),), None)

class Plugin(grpc.AuthMetadataPlugin):
    def __call__(self, context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
        callback(None, ValueError(context.service_url))

credentials: grpc.ChannelCredentials = grpc.composite_channel_credentials(
    grpc.ssl_channel_credentials(b"roots"), grpc.metadata_call_credentials(authenticate)
)
configuration = grpc.ssl_server_certificate_configuration([(b"key", b"chain")])
server: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(configuration, lambda: None)
local = grpc.local_channel_credentials(grpc.LocalConnectionType.UDS)
code: grpc.StatusCode = grpc.StatusCode.OK
compression: int = grpc.Compression.Gzip
grpc.install()
"""

_WRONG = """
import thalweg.grpc as grpc

grpc.ssl_channel_credentials("text")
grpc.local_channel_credentials("UDS")
grpc.StatusCode.UNKNOWN_NAME
"""


def errors(program, folder):
    """Returns the errors that mypy finds in a program."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(path)],
        env={"MYPYPATH": str(Path(__file__).parents[1]), "PATH": "", "MYPY_CACHE_DIR": str(folder / "cache")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not done.stderr
    return done.stdout.splitlines()


def test_program_with_right_types(tmp_path):
    assert errors(_PROGRAM, tmp_path) == []


def test_program_with_wrong_types(tmp_path):
    lines = errors(_WRONG, tmp_path)
    assert [line.rpartition("[")[2].rstrip("]") for line in lines] == ["arg-type", "arg-type", "attr-defined"], lines
