"""`THALWEG_TEST_GRPC=thalweg` runs the tests on this package, otherwise they run on grpcio."""

import os

if os.environ.get("THALWEG_TEST_GRPC") == "thalweg":
    import thalweg.grpc

    thalweg.grpc.install()
