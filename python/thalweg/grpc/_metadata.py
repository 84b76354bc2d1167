"""Metadata of calls."""

from typing import NamedTuple, Union


class Metadatum(NamedTuple):
    """A key of metadata and its value, `bytes` if the key ends with `-bin`."""

    key: str
    value: Union[str, bytes]
