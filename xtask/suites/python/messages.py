"""The fields of grpc/testing/messages.proto that the suite uses, by hand: stubs would need a compiler for little.

A field is a varint key (number << 3 | wire type) and its value (https://protobuf.dev/programming-guides/encoding/).
"""

VARINT, LENGTH_DELIMITED = 0, 2


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(field: int, number: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(number) if number else b""


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | LENGTH_DELIMITED) + varint(len(value)) + value


def fields(message: bytes) -> dict[int, int | bytes]:
    """The last value of each field: none that the suite reads is repeated."""
    found: dict[int, int | bytes] = {}
    position = 0

    def read_varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = message[position]
            position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while position < len(message):
        key = read_varint()
        if key & 7 == VARINT:
            found[key >> 3] = read_varint()
        elif key & 7 == LENGTH_DELIMITED:
            length = read_varint()
            if position + length > len(message):
                raise ValueError(f"field {key >> 3} is longer than its message")
            found[key >> 3] = message[position : position + length]
            position += length
        else:
            raise ValueError(f"wire type {key & 7} is none that these messages use")
    return found


def payload(size: int, field: int) -> bytes:
    """A message with a Payload of `size` zeros as `field`; none for 0, so that an empty message is empty."""
    return bytes_field(field, bytes_field(2, bytes(size))) if size else b""


def payload_size(message: bytes, field: int) -> int:
    """How large the Payload is that `message` holds as `field`. It must be zeros."""
    body = fields(fields(message).get(field, b"")).get(2, b"")
    if body.count(0) != len(body):
        raise ValueError(f"a payload of {len(body)} bytes is not all zeros")
    return len(body)
