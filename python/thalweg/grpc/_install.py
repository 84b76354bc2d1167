"""Makes this package the module `grpc` of the process."""

import sys

#: The package's modules that others import by grpcio's names.
_NAMES = ("", "._channel", "._interceptor", ".aio")


def install() -> None:
    """Makes `import grpc` import this package.

    Call it before anything imports `grpc`.

    Raises:
        RuntimeError: grpcio was imported before.
    """
    present = sys.modules.get("grpc")
    package = sys.modules["thalweg.grpc"]
    if present is not None and present is not package:
        raise RuntimeError("grpcio is already imported; call thalweg.grpc.install() before the first `import grpc`")
    for name in _NAMES:
        sys.modules["grpc" + name] = sys.modules["thalweg.grpc" + name]
