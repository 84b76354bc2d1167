"""Makes the implementation under test the module `grpc`. Import it before anything that imports `grpc`.

`THALWEG_TEST_GRPC` selects it: `thalweg`, the default, or `grpcio`, which the tests must pass on, too.
"""

import os

NAMES = ("thalweg", "grpcio")
NAME = os.environ.get("THALWEG_TEST_GRPC", "thalweg")
IS_THALWEG = NAME == "thalweg"

if NAME not in NAMES:
    raise RuntimeError(f"THALWEG_TEST_GRPC is `{NAME}`; set it to `thalweg` or `grpcio`, or unset it")
if IS_THALWEG:
    import thalweg.grpc

    thalweg.grpc.install()
