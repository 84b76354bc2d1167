"""Compiles the .proto files of the tests once per session, also for child processes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
#: The .proto files of gRPC's interoperability tests, as the repository has them.
INTEROP = TESTS.parent.parent / "crates/load/proto"
_FOLDER = "THALWEG_TEST_PROTOS"


def compile_all() -> "tempfile.TemporaryDirectory[str]":
    """Compiles all files, and makes this process and its children find the modules."""
    folder = tempfile.TemporaryDirectory(prefix="thalweg-protos-")
    for root, files in (
        (TESTS / "protos", ["calls.proto", "helloworld.proto"]),
        (INTEROP, [f"grpc/testing/{name}.proto" for name in ("empty", "messages", "test")]),
    ):
        # In another process: the compiler must not import `grpc` here.
        compiler = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={root}"]
        outputs = [f"--python_out={folder.name}", f"--grpc_python_out={folder.name}"]
        subprocess.run([*compiler, *outputs, *files], check=True)
    _flatten_interop(Path(folder.name))
    os.environ[_FOLDER] = folder.name
    use()
    return folder


def use() -> None:
    """Makes this process find the modules that its parent compiled."""
    sys.path.insert(0, os.environ[_FOLDER])


def _flatten_interop(folder: Path) -> None:
    """Moves `grpc/testing/*_pb2.py` to `interop_*_pb2.py`: a package `grpc` would hide the one under test."""
    for module in (folder / "grpc/testing").iterdir():
        text = module.read_text()
        for name in ("empty", "messages", "test"):
            text = text.replace(f"from grpc.testing import {name}_pb2 as", f"import interop_{name}_pb2 as")
        (folder / f"interop_{module.name}").write_text(text)
        module.unlink()
