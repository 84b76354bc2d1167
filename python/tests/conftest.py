"""`THALWEG_TEST_GRPC=thalweg` runs the tests on this package, otherwise they run on grpcio."""

import os

import pytest

if os.environ.get("THALWEG_TEST_GRPC") == "thalweg":
    import thalweg.grpc

    thalweg.grpc.install()


def pytest_collection_modifyitems(items):
    """Skips tests of what only this package does on grpcio."""
    for item in items:
        if item.get_closest_marker("thalweg_only") and os.environ.get("THALWEG_TEST_GRPC") != "thalweg":
            item.add_marker(pytest.mark.skip(reason="describes thalweg only"))
