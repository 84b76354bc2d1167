"""Child processes that run Python on an implementation of `grpc`."""

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
#: Seconds that a child may take.
LIMIT = 60


def environment(implementation: str) -> "dict[str, str]":
    """Returns the environment of a child that tests `implementation`."""
    # Children start in another folder, so that they find an installed package and not its sources.
    inherited = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    path = os.pathsep.join([str(SUPPORT), *inherited])
    return {**os.environ, "THALWEG_TEST_GRPC": implementation, "PYTHONPATH": path}


def run(
    implementation: str, source: str, *arguments: str, timeout: float = LIMIT
) -> "subprocess.CompletedProcess[str]":
    """Runs Python source to its end, with the chosen `grpc`, and returns its output. It may exit with any code.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
    """
    prelude = "import chosen, protos\nprotos.use()\n"
    command = [sys.executable, "-X", "dev", "-c", prelude + source, *arguments]
    return subprocess.run(
        command, cwd=SUPPORT, env=environment(implementation), capture_output=True, text=True, timeout=timeout
    )


def check(implementation: str, source: str, *arguments: str, timeout: float = LIMIT) -> str:
    """Like `run`, but fails unless the child exits with 0, and returns its standard output."""
    ended = run(implementation, source, *arguments, timeout=timeout)
    assert ended.returncode == 0, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


class Server:
    """A program of this folder that serves: it prints its port once it is ready, and ends with its standard input."""

    def __init__(self, implementation: str, program: str, *arguments: str) -> None:
        command = [sys.executable, str(SUPPORT / program), *arguments]
        self.process = subprocess.Popen(
            command, env=environment(implementation), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line.strip():
            raise RuntimeError(f"{command} exited with {self.process.wait()} before it served")
        self.address = f"localhost:{int(line)}"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()
