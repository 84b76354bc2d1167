"""Names of grpcio's `grpc._utilities` that generated code imports."""

from thalweg.grpc._handlers import RpcMethodHandler

__all__ = ("RpcMethodHandler", "first_version_is_lower")


def first_version_is_lower(version1: str, version2: str) -> bool:
    """Returns whether a version such as `1.85.3` or `1.85.3.dev0` is lower than another.

    Generated code compares its own with `grpc.__version__`. As in grpcio, a version counts as lower than the same one
    with a further part, and the comparison ends with False at a part that is not a number.
    """
    parts1, parts2 = version1.split("."), version2.split(".")
    for part1, part2 in zip(parts1[:3], parts2[:3]):
        if not (part1.isdecimal() and part2.isdecimal()):
            return False
        if int(part1) != int(part2):
            return int(part1) < int(part2)
    return len(parts1) < len(parts2)
