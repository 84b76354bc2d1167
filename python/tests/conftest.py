"""Chooses the package that `import grpc` gives to the tests: grpcio, or ours with `THALWEG_TEST_GRPC=thalweg`."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

IS_THALWEG = os.environ.get("THALWEG_TEST_GRPC") == "thalweg"

if IS_THALWEG:
    import thalweg.grpc

    thalweg.grpc.install()


def pytest_configure(config):
    config.addinivalue_line("markers", "thalweg_only: describes what only Thalweg does")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("thalweg_only") and not IS_THALWEG:
            item.add_marker(pytest.mark.skip(reason="describes thalweg only"))
