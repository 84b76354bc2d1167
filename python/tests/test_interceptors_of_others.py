"""Interceptor packages run unchanged: grpc-interceptor, and OpenTelemetry's instrumentation of both interfaces."""

import calls_pb2
import calls_pb2_grpc
import grpc
import pytest
import servers
import servicers
from grpc_interceptor import AsyncServerInterceptor, ClientCallDetails, ClientInterceptor, ServerInterceptor
from grpc_interceptor.exceptions import NotFound
from grpc_interceptor.exception_to_status import AsyncExceptionToStatusInterceptor, ExceptionToStatusInterceptor
from opentelemetry.instrumentation import grpc as instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class _Adding(ClientInterceptor):
    def intercept(self, method, request_or_iterator, call_details):
        details = ClientCallDetails(
            call_details.method,
            call_details.timeout,
            [*(call_details.metadata or ()), (servicers.ECHO_INITIAL, "added")],
            call_details.credentials,
            call_details.wait_for_ready,
            call_details.compression,
        )
        return method(request_or_iterator, details)


class _Seeing(ServerInterceptor):
    def __init__(self):
        self.methods = []

    def intercept(self, method, request_or_iterator, context, method_name):
        self.methods.append(method_name)
        return method(request_or_iterator, context)


def test_interceptors_of_both_blocking_sides():
    seeing = _Seeing()
    with servers.blocking(interceptors=[seeing]) as address, grpc.insecure_channel(address) as plain:
        calls = calls_pb2_grpc.CallsStub(grpc.intercept_channel(plain, _Adding()))
        _, call = calls.Unary.with_call(calls_pb2.Request())
        assert (servicers.ECHO_INITIAL, "added") in [tuple(pair) for pair in call.initial_metadata()]
        assert len(list(calls.ServerStream(calls_pb2.Request(responses=2)))) == 2
        assert calls.ClientStream(iter([calls_pb2.Request()] * 3)).requests == 3
        assert len(list(calls.BidiStream(iter([calls_pb2.Request(responses=1)])))) == 1
    names = ["Unary", "ServerStream", "ClientStream", "BidiStream"]
    assert seeing.methods == [f"/thalweg.testing.Calls/{name}" for name in names]


class _Missing(calls_pb2_grpc.CallsServicer):
    def Unary(self, request, context):
        raise NotFound("no such thing")


class _AioMissing(calls_pb2_grpc.CallsServicer):
    async def Unary(self, request, context):
        raise NotFound("no such thing")


def test_exceptions_become_statuses():
    def add(server):
        calls_pb2_grpc.add_CallsServicer_to_server(_Missing(), server)

    with servers.blocking(add, interceptors=[ExceptionToStatusInterceptor()]) as address:
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as raised:
            calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == "no such thing"


class _AioSeeing(AsyncServerInterceptor):
    def __init__(self):
        self.methods = []

    async def intercept(self, method, request_or_iterator, context, method_name):
        self.methods.append(method_name)
        response = method(request_or_iterator, context)
        return response if hasattr(response, "__aiter__") else await response


async def test_interceptors_of_an_asyncio_server():
    def add(server):
        calls_pb2_grpc.add_CallsServicer_to_server(_AioMissing(), server)

    seeing = _AioSeeing()
    async with servers.aio(add, interceptors=[AsyncExceptionToStatusInterceptor(), seeing]) as address:
        async with grpc.aio.insecure_channel(address) as channel:
            with pytest.raises(grpc.RpcError) as raised:
                await calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert seeing.methods == ["/thalweg.testing.Calls/Unary"]


@pytest.fixture
def spans():
    """Exports spans to memory; returns the tracer provider and the exporter."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def _check_spans(exporter, method):
    """A call has one span per side, and the server's is the child of the client's."""
    by_kind = {span.kind.name: span for span in exporter.get_finished_spans()}
    assert set(by_kind) == {"CLIENT", "SERVER"}
    client, server = by_kind["CLIENT"], by_kind["SERVER"]
    assert client.context.trace_id == server.context.trace_id
    assert server.parent.span_id == client.context.span_id
    assert {client.name.lstrip("/"), server.name.lstrip("/")} == {f"thalweg.testing.Calls/{method}"}


@pytest.mark.parametrize("method", ["Unary", "ServerStream"])
def test_opentelemetry_of_the_blocking_interface(spans, method):
    provider, exporter = spans
    of_server = instrumentation.server_interceptor(tracer_provider=provider)
    of_client = instrumentation.client_interceptor(tracer_provider=provider)
    with servers.blocking(interceptors=[of_server]) as address, grpc.insecure_channel(address) as plain:
        calls = calls_pb2_grpc.CallsStub(instrumentation.grpcext.intercept_channel(plain, of_client))
        if method == "Unary":
            calls.Unary(calls_pb2.Request())
        else:
            assert len(list(calls.ServerStream(calls_pb2.Request(responses=3)))) == 3
    _check_spans(exporter, method)


@pytest.mark.parametrize("method", ["Unary", "ServerStream"])
async def test_opentelemetry_of_the_asyncio_interface(spans, method):
    provider, exporter = spans
    of_server = instrumentation.aio_server_interceptor(tracer_provider=provider)
    of_client = instrumentation.aio_client_interceptors(tracer_provider=provider)
    async with servers.aio(interceptors=[of_server]) as address:
        async with grpc.aio.insecure_channel(address, interceptors=of_client) as channel:
            calls = calls_pb2_grpc.CallsStub(channel)
            if method == "Unary":
                await calls.Unary(calls_pb2.Request())
            else:
                assert len([it async for it in calls.ServerStream(calls_pb2.Request(responses=3))]) == 3
    _check_spans(exporter, method)
