"""Names of grpcio's `grpc._utilities` that generated code imports."""

from thalweg.grpc._handlers import RpcMethodHandler

__all__ = ("RpcMethodHandler", "first_version_is_lower")


def first_version_is_lower(version1: str, version2: str) -> bool:
    """Returns whether a version such as `1.85.3` or `1.85.3.dev0` is lower than another.

    Generated code compares its own with `grpc.__version__`. As in grpcio, a version counts as lower than the same one
    with a further part, and versions with other parts than numbers are not compared: the result is False.
    """
    parts1, parts2 = version1.split("."), version2.split(".")
    try:
        numbers1, numbers2 = [int(part) for part in parts1[:3]], [int(part) for part in parts2[:3]]
    except ValueError:
        return False
    return len(parts1) < len(parts2) if numbers1 == numbers2 else numbers1 < numbers2
