"""grpcio-channelz: the servers and channels of the process."""

import time
from concurrent import futures

import echo
import grpc
import pytest
from grpc_channelz.v1 import channelz, channelz_pb2, channelz_pb2_grpc


@pytest.fixture
def service():
    """A stub of the channelz service of this process."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    channelz.add_channelz_servicer(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_channelz", 1)]) as channel:
        yield channelz_pb2_grpc.ChannelzStub(channel)
    server.stop(None).wait(10)


def found(entries, is_searched):
    (entry,) = filter(is_searched, entries)
    return entry


def test_channels_with_their_calls_subchannels_and_sockets(service):
    options = [("grpc.enable_channelz", 1)]
    with echo.serving(options=options) as (address, _), grpc.insecure_channel(address, options) as channel:
        started = time.time()
        for _ in range(3):
            echo.call(channel)

        def is_ours(entry):
            return address in entry.data.target

        top = found(service.GetTopChannels(channelz_pb2.GetTopChannelsRequest()).channel, is_ours)
        request = channelz_pb2.GetChannelRequest(channel_id=top.ref.channel_id)
        shown = service.GetChannel(request).channel
        assert shown.ref.channel_id == top.ref.channel_id
        assert (shown.data.calls_started, shown.data.calls_succeeded, shown.data.calls_failed) == (3, 3, 0)
        assert abs(shown.data.last_call_started_timestamp.ToDatetime().timestamp() - started) < 86_400
        assert shown.data.state.state == channelz_pb2.ChannelConnectivityState.READY
        assert len(shown.data.trace.events) > 0

        request = channelz_pb2.GetSubchannelRequest(subchannel_id=shown.subchannel_ref[0].subchannel_id)
        subchannel = service.GetSubchannel(request).subchannel
        assert subchannel.data.calls_succeeded == 3

        request = channelz_pb2.GetSocketRequest(socket_id=subchannel.socket_ref[0].socket_id)
        socket = service.GetSocket(request).socket
        assert (socket.data.streams_started, socket.data.streams_succeeded) == (3, 3)
        assert socket.remote.tcpip_address.port == int(address.rpartition(":")[2])


def test_servers_with_their_calls_and_sockets(service):
    options = [("grpc.enable_channelz", 1)]
    with echo.serving(options=options) as (address, _), grpc.insecure_channel(address) as channel:
        for _ in range(2):
            echo.call(channel)
        port = int(address.rpartition(":")[2])

        def ports(server):
            request = channelz_pb2.GetServerSocketsRequest(server_id=server.ref.server_id)
            for reference in service.GetServerSockets(request).socket_ref:
                request = channelz_pb2.GetSocketRequest(socket_id=reference.socket_id)
                yield service.GetSocket(request).socket.local.tcpip_address.port

        servers = service.GetServers(channelz_pb2.GetServersRequest()).server
        server = found(servers, lambda it: port in ports(it))
        assert len(server.listen_socket) == 1
        deadline = time.monotonic() + 5
        while True:
            request = channelz_pb2.GetServerRequest(server_id=server.ref.server_id)
            data = service.GetServer(request).server.data
            if data.calls_succeeded == 2:
                break
            assert time.monotonic() < deadline, data
        assert (data.calls_started, data.calls_failed) == (2, 0)

        request = channelz_pb2.GetServerSocketsRequest(server_id=server.ref.server_id)
        response = service.GetServerSockets(request)
        assert len(response.socket_ref) == 1 and response.end


def test_unknown_entries_are_not_found(service):
    unknown = 1 << 40
    for call, request in (
        (service.GetChannel, channelz_pb2.GetChannelRequest(channel_id=unknown)),
        (service.GetSubchannel, channelz_pb2.GetSubchannelRequest(subchannel_id=unknown)),
        (service.GetServer, channelz_pb2.GetServerRequest(server_id=unknown)),
        (service.GetServerSockets, channelz_pb2.GetServerSocketsRequest(server_id=unknown)),
        (service.GetSocket, channelz_pb2.GetSocketRequest(socket_id=unknown)),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call(request)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
