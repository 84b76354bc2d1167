"""The example `fastapi_app.py`: an ASGI application that calls a gRPC backend."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import chosen
import grpc
import httpx
import pytest

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/fastapi_app.py"


@pytest.fixture
async def app(any_server, monkeypatch, tmp_path):
    """The example's application, started, with an HTTP client. On grpcio it runs without its two lines."""
    text = EXAMPLE.read_text()
    if not chosen.IS_THALWEG:
        kept = [line for line in text.splitlines() if "thalweg.grpc" not in line]
        assert len(kept) == len(text.splitlines()) - 2
        text = "\n".join(kept)
    (tmp_path / "example_app.py").write_text(text)
    monkeypatch.setenv("GREETER", any_server)
    spec = importlib.util.spec_from_file_location("example_app", tmp_path / "example_app.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "example_app", module)
    spec.loader.exec_module(module)
    async with module.lifespan(module.app):
        transport = httpx.ASGITransport(app=module.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            yield client


async def test_requests_become_calls(app):
    responses = await asyncio.gather(*(app.get(f"/hello/{number}") for number in range(50)))
    assert [response.json() for response in responses] == [{"message": f"Hello, {number}!"} for number in range(50)]


async def test_stream_is_forwarded(app):
    response = await app.get("/hellos/Ada")
    assert response.text.splitlines() == [f"{number}: Hello, Ada!" for number in range(3)]


async def test_status_becomes_an_http_status(app, monkeypatch):
    module = sys.modules["example_app"]

    class Failing:
        def SayHello(self, request, timeout):
            raise grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, (), (), details="nobody")

    monkeypatch.setattr(module.app.state, "greeter", Failing())
    response = await app.get("/hello/x")
    assert (response.status_code, response.json()) == (404, {"detail": "nobody"})
