"""Metadata, errors and other values of `grpc.aio`."""

import copy
import pickle

import grpc
import pytest
from grpc import aio


def metadata():
    return aio.Metadata(("a", "1"), ("b-bin", b"2"), ("a", "3"))


def test_metadata_is_read_by_key():
    it = metadata()
    assert it["a"] == "1"
    assert it.get("b-bin") == b"2" and it.get("none") is None and it.get("none", "x") == "x"
    assert it.get_all("a") == ["1", "3"] and it.get_all("none") == []
    assert "a" in it and "none" not in it and 5 not in it
    with pytest.raises(KeyError):
        it["none"]


def test_metadata_is_a_collection_of_pairs():
    it = metadata()
    assert len(it) == 3
    assert list(it) == [("a", "1"), ("a", "3"), ("b-bin", b"2")]
    assert list(it.keys()) == ["a", "b-bin"]
    assert list(it.values()) == [["1", "3"], [b"2"]]
    assert list(it.items()) == [("a", ["1", "3"]), ("b-bin", [b"2"])]
    assert repr(aio.Metadata(("a", "1"))) == "Metadata((('a', '1'),))"
    assert aio.Metadata.from_tuple(tuple(it)) == it
    assert len(aio.Metadata.from_tuple(())) == 0


def test_metadata_is_changed():
    it = metadata()
    it["a"] = "x"
    it["new"] = "y"
    it.add("new", "z")
    assert list(it) == [("a", "x"), ("a", "3"), ("b-bin", b"2"), ("new", "y"), ("new", "z")]
    del it["a"]
    assert it.get_all("a") == ["3"]
    del it["a"]
    assert "a" not in it
    it.delete_all("new")
    it.set_all("c", ["1", "2"])
    assert list(it) == [("b-bin", b"2"), ("c", "1"), ("c", "2")]
    for remove in (it.__delitem__, it.delete_all):
        with pytest.raises(KeyError):
            remove("none")


def test_metadata_is_compared_and_added():
    assert metadata() == metadata()
    assert metadata() == (("a", "1"), ("a", "3"), ("b-bin", b"2"))
    assert metadata() != aio.Metadata() and metadata() != [("a", "1")]
    assert metadata() + aio.Metadata(("c", "4")) == aio.Metadata(*metadata(), ("c", "4"))
    assert metadata() + (("c", "4"),) == aio.Metadata(*metadata(), ("c", "4"))
    with pytest.raises(TypeError):
        metadata() + 3
    with pytest.raises(TypeError):
        hash(metadata())


@pytest.mark.parametrize("clone", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy, copy.deepcopy])
def test_errors_are_copied(clone):
    initial, trailing = aio.Metadata(("i", "1")), aio.Metadata(("t", "2"))
    error = clone(aio.AioRpcError(grpc.StatusCode.NOT_FOUND, initial, trailing, details="d", debug_error_string="dbg"))
    assert isinstance(error, aio.AioRpcError) and isinstance(error, grpc.RpcError)
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert (error.initial_metadata(), error.trailing_metadata()) == (initial, trailing)
    assert (error.details(), error.debug_error_string()) == ("d", "dbg")
    assert str(error) == repr(error)
    assert 'details = "d"' in str(error) and "StatusCode.NOT_FOUND" in str(error)


def test_kinds_of_errors():
    for error in (aio.UsageError, aio.AbortError, aio.InternalError):
        assert issubclass(error, aio.BaseError)
    assert issubclass(aio.BaseError, Exception)
    assert not issubclass(aio.AioRpcError, aio.BaseError)


def test_end_of_stream():
    assert not aio.EOF
    assert repr(aio.EOF) == "<grpc.aio.EOF>"


def test_client_call_details_are_a_named_tuple():
    details = aio.ClientCallDetails(b"/s/m", 1.0, aio.Metadata(), None, True)
    assert isinstance(details, grpc.ClientCallDetails)
    assert details._fields == ("method", "timeout", "metadata", "credentials", "wait_for_ready")
    assert details._replace(timeout=2.0).timeout == 2.0
    assert details == aio.ClientCallDetails(*details)
