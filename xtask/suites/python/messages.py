"""The fields of grpc/testing/messages.proto that the suite uses, by hand, which avoids a compiler for stubs.

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
    """Returns the last value of each field; the suite reads no repeated fields."""
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
            raise ValueError(f"wire type {key & 7} is not used by these messages")
    return found


def payload(size: int, field: int) -> bytes:
    """A message with a Payload of `size` zeros as `field`; none for 0, so that an empty message is empty."""
    return bytes_field(field, bytes_field(2, bytes(size))) if size else b""


def payload_size(message: bytes, field: int) -> int:
    """Returns the size of the Payload in `field` of `message`, which must be zeros."""
    body = fields(fields(message).get(field, b"")).get(2, b"")
    if body.count(0) != len(body):
        raise ValueError(f"a payload of {len(body)} bytes is not all zeros")
    return len(body)
