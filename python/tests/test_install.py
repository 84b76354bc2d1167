"""`install()`, `python -m thalweg.grpc`, and the modules that generated code and other packages import."""

import subprocess
import sys
import textwrap

import pytest


def run(*arguments, status=0, cwd=None):
    """Runs Python with these arguments in a process of its own, and returns its output."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def run_code(code, **keywords):
    return run("-c", textwrap.dedent(code), **keywords)


pytestmark = pytest.mark.thalweg_only


def test_modules_are_the_same_under_both_names():
    run_code(
        """
        import sys, thalweg.grpc
        thalweg.grpc.install()
        thalweg.grpc.install()
        import grpc, grpc.aio, grpc.experimental, grpc.experimental.aio, grpc._utilities, grpc._cython.cygrpc
        from grpc import StatusCode
        from grpc._utilities import first_version_is_lower
        assert grpc is thalweg.grpc
        for name, module in list(sys.modules.items()):
            if name == "grpc" or name.startswith("grpc."):
                real = "thalweg." + name
                assert sys.modules[real] is module, name
                assert module.__name__ == module.__spec__.name == real, name
        assert StatusCode is thalweg.grpc._status.StatusCode
        """
    )


def test_unknown_modules_are_not_found():
    error = run_code("import thalweg.grpc; thalweg.grpc.install(); import grpc.unknown", status=1)
    assert "ModuleNotFoundError: No module named 'grpc.unknown'" in error


def test_install_fails_after_an_import_of_grpcio():
    error = run_code("import grpc, thalweg.grpc; thalweg.grpc.install()", status=1)
    assert "RuntimeError: grpcio is already imported; call thalweg.grpc.install() before" in error


def test_both_are_in_one_process_without_install():
    run_code(
        """
        import grpc, thalweg.grpc
        assert grpc is not thalweg.grpc
        assert grpc.StatusCode.OK is not thalweg.grpc.StatusCode.OK
        """
    )


def test_version_of_the_distribution_is_that_of_the_interface():
    run_code(
        """
        import importlib.metadata, thalweg.grpc
        thalweg.grpc.install()
        import grpc
        for name in ("grpcio", "GRPCIO"):
            assert importlib.metadata.version(name) == grpc.__version__
        assert importlib.metadata.metadata("grpcio")["Name"] == "grpcio"
        assert importlib.metadata.version("pytest")
        """
    )


@pytest.mark.parametrize(
    "version1, version2, expected",
    [
        ("1.59.0", "1.60.0", True),
        ("1.60.0", "1.59.0", False),
        ("1.9.0", "1.60.0", True),
        ("1.60.0", "1.60.0", False),
        ("1.60.0", "1.60.1", True),
        ("1.60.0", "1.60.0.dev0", True),
        ("1.60.0.dev0", "1.60.0", False),
        ("1.60.0rc1", "1.61.0", True),
        ("1.60.0rc1", "1.60.1", False),
    ],
)
def test_versions_are_compared_as_in_grpcio(version1, version2, expected):
    code = """
        import sys
        from {module} import first_version_is_lower
        assert first_version_is_lower(*sys.argv[1:3]) is {expected}
    """
    for module in ("thalweg.grpc._utilities", "grpc._utilities"):
        run("-c", textwrap.dedent(code.format(module=module, expected=expected)), version1, version2)


def test_a_program_is_run_with_its_arguments_and_folder(tmp_path):
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    app = tmp_path / "app.py"
    app.write_text(
        textwrap.dedent(
            """
            import sys, beside, grpc
            print(__name__, sys.argv, beside.NAME, grpc.__name__, __file__)
            """
        )
    )
    output = run("-m", "thalweg.grpc", app, "-x", "argument")
    assert output == f"__main__ {[str(app), '-x', 'argument']} beside thalweg.grpc {app}\n"


def test_a_module_is_run_with_its_arguments(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "app.py").write_text("import sys, grpc\nprint(__name__, sys.argv[1:], grpc.__name__)\nsys.exit(3)\n")
    run("-m", "thalweg.grpc", "-m", "package.app", "argument", cwd=tmp_path, status=3)


@pytest.mark.parametrize("arguments, text", [((), "usage:"), (("-x",), "unknown option -x")])
def test_wrong_usage_is_told(arguments, text):
    assert text in run("-m", "thalweg.grpc", *arguments, status=2)


def test_private_modules_of_aio_have_its_names():
    run_code(
        """
        import thalweg.grpc
        thalweg.grpc.install()
        import grpc
        from grpc.aio._call import AioRpcError
        import grpc.aio._interceptor, grpc.aio._base_call, grpc.aio._base_channel, grpc.aio._base_server
        assert AioRpcError is grpc.aio.AioRpcError
        assert grpc.aio.__spec__.name == "thalweg.grpc.aio"
        from grpc._interceptor import _UnaryOutcome
        from grpc._channel import _InactiveRpcError, _MultiThreadedRendezvous, _Rendezvous
        assert issubclass(_InactiveRpcError, grpc.RpcError)
        """
    )


_PROTO = """
syntax = "proto3";
package test;
message Note { string text = 1; }
service Notes { rpc Add(Note) returns (Note); }
"""


def test_protos_and_services_at_run_time(tmp_path):
    (tmp_path / "notes.proto").write_text(_PROTO)
    run_code(
        """
        import thalweg.grpc
        thalweg.grpc.install()
        import grpc
        messages, services = grpc.protos_and_services("notes.proto")
        assert messages.Note(text="a").text == "a"
        assert services.grpc is thalweg.grpc
        assert issubclass(services.NotesServicer, object) and services.NotesStub
        assert grpc.protos("notes.proto") is messages and grpc.services("notes.proto") is services
        """,
        cwd=tmp_path,
    )


def test_protos_name_the_package_that_is_missing():
    error = run_code(
        "import sys, thalweg.grpc; sys.modules['grpc_tools'] = None; thalweg.grpc.protos('notes.proto')", status=1
    )
    assert "NotImplementedError: grpc.protos needs the package grpcio-tools" in error


@pytest.mark.parametrize(
    "modules",
    [
        "grpc_health.v1.health, grpc_health.v1.health_pb2_grpc",
        "grpc_reflection.v1alpha.reflection",
        "grpc_status.rpc_status",
        "grpc_channelz.v1.channelz, grpc_channelz.v1._servicer",
    ],
)
def test_packages_of_grpc_can_be_imported(modules):
    run_code(
        f"""
        import thalweg.grpc
        thalweg.grpc.install()
        import {modules}
        """
    )


def test_public_names_are_those_of_grpcio():
    run_code(
        """
        import grpc, thalweg.grpc
        assert sorted(thalweg.grpc.__all__) == sorted(grpc.__all__)
        """
    )
