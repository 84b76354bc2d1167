"""Metadata of `grpc.aio`: a multi-dictionary of keys and their values."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any, Optional, Union

MetadataKey = str
MetadataValue = Union[str, bytes]
MetadatumType = tuple[MetadataKey, MetadataValue]


class Metadata(Collection):
    """Pairs of keys and values, for calls and interceptors.

    A key may have several values, which keep their order. Iterating gives pairs, key by key.
    """

    def __init__(self, *args: MetadatumType) -> None:
        self._values: dict[MetadataKey, list[MetadataValue]] = {}
        for key, value in args:
            self.add(key, value)

    @classmethod
    def from_tuple(cls, raw_metadata: Optional[Iterable[MetadatumType]]) -> Metadata:
        """Returns metadata with the given pairs, if there are any."""
        return cls(*(raw_metadata or ()))

    @classmethod
    def _create(cls, raw_metadata: Union[None, Metadata, Iterable[MetadatumType]]) -> Metadata:
        return raw_metadata if isinstance(raw_metadata, cls) else cls.from_tuple(raw_metadata)

    def add(self, key: MetadataKey, value: MetadataValue) -> None:
        """Adds a value to those of `key`."""
        self._values.setdefault(key, []).append(value)

    def __len__(self) -> int:
        return sum(len(values) for values in self._values.values())

    def __getitem__(self, key: MetadataKey) -> MetadataValue:
        """Returns the first value of `key`."""
        values = self._values[key]
        if not values:
            raise KeyError(key)
        return values[0]

    def __setitem__(self, key: MetadataKey, value: MetadataValue) -> None:
        """Replaces the first value of `key`, or adds one."""
        self._values.setdefault(key, [])[:1] = [value]

    def __delitem__(self, key: MetadataKey) -> None:
        """Removes the first value of `key`."""
        values = self._values.get(key)
        if not values:
            raise KeyError(key)
        del values[0]
        if not values:
            del self._values[key]

    def delete_all(self, key: MetadataKey) -> None:
        """Removes all values of `key`."""
        del self._values[key]

    def __iter__(self) -> Iterator[MetadatumType]:
        for key, values in self._values.items():
            for value in values:
                yield key, value

    def keys(self) -> KeysView:
        """Returns a view of the keys."""
        return KeysView(self._values)

    def values(self) -> ValuesView:
        """Returns a view of the values: a list for each key."""
        return ValuesView(self._values)

    def items(self) -> ItemsView:
        """Returns a view of the keys and their lists of values."""
        return ItemsView(self._values)

    def get(self, key: MetadataKey, default: Optional[MetadataValue] = None) -> Optional[MetadataValue]:
        """Returns the first value of `key`, or `default`."""
        try:
            return self[key]
        except KeyError:
            return default

    def get_all(self, key: MetadataKey) -> list[MetadataValue]:
        """Returns all values of `key`, in a list that may be changed in place."""
        return self._values.get(key, [])

    def set_all(self, key: MetadataKey, values: list[MetadataValue]) -> None:
        """Replaces all values of `key`."""
        self._values[key] = values

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Metadata):
            return self._values == other._values
        if isinstance(other, tuple):
            return tuple(self) == other
        return NotImplemented

    __hash__ = None

    def __add__(self, other: Any) -> Metadata:
        if isinstance(other, (Metadata, tuple)):
            return Metadata(*self, *other)
        return NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self)!r})"
