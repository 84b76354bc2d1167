"""TLS sessions of channels."""


class SSLSessionCache:
    """A value of the option `grpc.ssl_session_cache`, which has no effect: a channel resumes its sessions anyway."""

    def __init__(self, cache: object) -> None:
        self._cache = cache

    def __int__(self) -> int:
        return id(self)

    __index__ = __int__


def ssl_session_cache_lru(capacity: int) -> SSLSessionCache:
    """Returns a value of the option `grpc.ssl_session_cache`. Each channel resumes its sessions with or without it.

    Args:
        capacity: Number of sessions; not used.
    """
    return SSLSessionCache(capacity)
