"""Runs a program with this package in place of grpcio: `python -m thalweg.grpc app.py`, or `-m package.module`."""

import os
import runpy
import sys
from typing import Sequence

import thalweg.grpc

_USAGE = "usage: python -m thalweg.grpc [-m] PROGRAM [ARGUMENT]...\n"


def main(arguments: Sequence[str]) -> int:
    """Runs the program that the arguments name. Returns the exit code of a wrong usage."""
    is_module = arguments[:1] == ["-m"]
    rest = list(arguments[1:] if is_module else arguments)
    if not rest or rest[0] in ("-h", "--help"):
        (sys.stdout if rest else sys.stderr).write(_USAGE)
        return 0 if rest else 2
    if rest[0].startswith("-"):
        sys.stderr.write(f"unknown option {rest[0]}\n{_USAGE}")
        return 2
    thalweg.grpc.install()
    sys.argv[:] = rest
    if is_module:
        # `python -m` has put the current folder there.
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
