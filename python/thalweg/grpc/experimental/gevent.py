"""gevent, which is not supported."""


def init_gevent() -> None:
    """Raises `NotImplementedError`: blocking calls would block gevent's hub."""
    raise NotImplementedError("gevent is not supported; use threads, or grpc.aio")
