"""Packages of the gRPC project that import `grpc` run unchanged: health checking, reflection, rich statuses, channelz."""

import asyncio

import calls_pb2
import calls_pb2_grpc
import grpc
import pytest
import servers
import servicers
from google.protobuf import any_pb2, descriptor_pool
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

SERVICE = calls_pb2.DESCRIPTOR.services_by_name["Calls"].full_name
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def test_health_of_a_blocking_server():
    servicer = health.HealthServicer(experimental_non_blocking=False)
    servicer.set("a", NOT_SERVING)

    def add(server):
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)

    with servers.blocking(add) as address, grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        assert stub.Check(health_pb2.HealthCheckRequest()).status == SERVING
        assert stub.Check(health_pb2.HealthCheckRequest(service="a")).status == NOT_SERVING
        with pytest.raises(grpc.RpcError) as raised:
            stub.Check(health_pb2.HealthCheckRequest(service="unknown"))
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="a"))
        assert next(watch).status == NOT_SERVING
        servicer.set("a", SERVING)
        assert next(watch).status == SERVING
        watch.cancel()


def test_health_watch_without_a_thread():
    """The servicer's default uses `experimental_non_blocking` handlers, which keep no thread of the pool."""
    servicer = health.HealthServicer()

    def add(server):
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)

    with servers.blocking(add, workers=1) as address, grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(4)]
        assert [next(watch).status for watch in watches] == [SERVING] * 4
        servicer.set("", NOT_SERVING)
        assert [next(watch).status for watch in watches] == [NOT_SERVING] * 4
        for watch in watches:
            watch.cancel()


async def test_health_of_an_asyncio_server():
    servicer = health.aio.HealthServicer()

    def add(server):
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)

    async with servers.aio(add) as address, grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == SERVING
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        await servicer.set("", NOT_SERVING)
        assert (await watch.read()).status == NOT_SERVING
        await servicer.enter_graceful_shutdown()
        watch.cancel()


def _add_reflection(server):
    calls_pb2_grpc.add_CallsServicer_to_server(calls_pb2_grpc.CallsServicer(), server)
    reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server)


@pytest.mark.parametrize("interface", sorted(servers.BOTH))
def test_reflection(interface):
    with servers.BOTH[interface](_add_reflection) as address, grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert set(database.get_services()) == {SERVICE, reflection.SERVICE_NAME}
        service = descriptor_pool.DescriptorPool(database).FindServiceByName(SERVICE)
        assert [method.name for method in service.methods] == ["Unary", "ServerStream", "ClientStream", "BidiStream"]


def _rich_status():
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason="FULL", domain="test"))
    return status_pb2.Status(code=code_pb2.RESOURCE_EXHAUSTED, message="it is full", details=[detail])


class _Failing(calls_pb2_grpc.CallsServicer):
    def Unary(self, request, context):
        context.abort_with_status(rpc_status.to_status(_rich_status()))


class _AioFailing(calls_pb2_grpc.CallsServicer):
    async def Unary(self, request, context):
        await context.abort_with_status(rpc_status.to_status(_rich_status()))


@pytest.mark.parametrize("interface", sorted(servers.BOTH))
def test_rich_status(interface):
    servicer = {"blocking": _Failing, "aio": _AioFailing}[interface]()

    def add(server):
        calls_pb2_grpc.add_CallsServicer_to_server(servicer, server)

    with servers.BOTH[interface](add) as address, grpc.insecure_channel(address) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert rpc_status.from_call(raised.value) == _rich_status()

    async def from_aio():
        from grpc_status import rpc_status as of_aio

        async with servers.aio(lambda server: calls_pb2_grpc.add_CallsServicer_to_server(_AioFailing(), server)) as at:
            async with grpc.aio.insecure_channel(at) as channel:
                call = calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
                assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert await of_aio.aio.from_call(call) == _rich_status()

    asyncio.run(from_aio())


@pytest.mark.parametrize("interface", sorted(servers.BOTH))
def test_channelz(interface):
    """grpcio-channelz asks `grpc._cython` for its pages."""
    from grpc_channelz.v1 import channelz, channelz_pb2, channelz_pb2_grpc

    def add(server):
        channelz.add_channelz_servicer(server)
        servicer = {"blocking": servicers.Calls, "aio": servicers.AioCalls}[interface]()
        calls_pb2_grpc.add_CallsServicer_to_server(servicer, server)

    options = (("grpc.enable_channelz", 1),)
    with servers.BOTH[interface](add, options=options) as address:
        with grpc.insecure_channel(address, options) as channel:
            calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request())
            with pytest.raises(grpc.RpcError):
                calls_pb2_grpc.CallsStub(channel).Unary(calls_pb2.Request(code=5))
            stub = channelz_pb2_grpc.ChannelzStub(channel)
            found = stub.GetServers(channelz_pb2.GetServersRequest(start_server_id=0)).server
            assert any(it.data.calls_succeeded >= 1 and it.data.calls_failed >= 1 for it in found)
            found = stub.GetTopChannels(channelz_pb2.GetTopChannelsRequest(start_channel_id=0)).channel
            assert any(it.data.calls_succeeded >= 1 and it.data.calls_failed == 1 for it in found)
