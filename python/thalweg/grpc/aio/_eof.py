"""The end of a stream."""


class _EndOfStream:
    """Returned by `read` after the last message. It is false."""

    def __bool__(self):
        return False

    def __len__(self):
        return 0

    def __repr__(self):
        return "<grpc.aio.EOF>"

    def __reduce__(self):
        return "EOF"


#: Returned by `read` after the last message.
EOF = _EndOfStream()
