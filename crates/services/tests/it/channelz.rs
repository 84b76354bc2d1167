//! Tests `grpc.channelz.v1` with the generated client. Other servers run in the same process.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use thalweg::channel::EndpointList;
use thalweg::channel::policy::PolicyConfig;
use thalweg::{Channel, Code};
use thalweg_services::admin::AdminServices;
use thalweg_services::channelz::pb;
use thalweg_services::channelz::pb::address::{Address, TcpIpAddress};
use thalweg_services::channelz::pb::channel_connectivity_state::State;
use thalweg_services::channelz::pb::channelz_client::ChannelzClient;
use thalweg_services::health::pb::HealthCheckRequest;
use thalweg_services::health::pb::health_client::HealthClient;
use thalweg_services::health::{self, HealthReporter};

use crate::support::{Running, soon};

/// Started, succeeded and failed calls.
type Counts = [i64; 3];

/// Queries one server and the channel to it.
struct ChannelzQueries {
    client: ChannelzClient,
    _admin: Running,
    address: String,
}

impl ChannelzQueries {
    async fn new(server: &Running) -> Self {
        let admin = Running::start(|server| server.add_service(AdminServices::new())).await;
        let client = ChannelzClient::new(admin.channel.clone());
        Self { client, _admin: admin, address: server.address.clone() }
    }

    async fn server(&self) -> Option<pb::Server> {
        let mut start_server_id = 0;
        loop {
            // Small pages, so that there is usually a next one.
            let request = pb::GetServersRequest { start_server_id, max_results: 2 };
            let page = soon(self.client.get_servers(request)).await.expect("a page").into_inner();
            let ids: Vec<i64> = page.server.iter().map(id_of).collect();
            assert!(ids.is_sorted() && ids.first() >= Some(&start_server_id).filter(|_| !ids.is_empty()));
            let listens_there = |server: &pb::Server| server.listen_socket[0].name == self.address;
            start_server_id = ids.last().map_or(0, |last| last + 1);
            if let Some(server) = page.server.into_iter().find(listens_there) {
                return Some(server);
            }
            if page.end {
                return None;
            }
        }
    }

    async fn sockets(&self) -> Vec<pb::Socket> {
        let server = self.server().await.expect("it runs");
        let server_id = id_of(&server);
        let request = pb::GetServerSocketsRequest { server_id, ..Default::default() };
        let one = soon(self.client.get_server(pb::GetServerRequest { server_id })).await.expect("a server");
        assert_eq!(id_of(&one.into_inner().server.expect("present")), server_id);
        let page = soon(self.client.get_server_sockets(request)).await.expect("a page").into_inner();
        assert!(page.end);
        let mut sockets = Vec::new();
        for socket in page.socket_ref {
            sockets.push(self.socket(socket.socket_id).await);
        }
        sockets
    }

    async fn socket(&self, socket_id: i64) -> pb::Socket {
        let request = self.client.get_socket(pb::GetSocketRequest { socket_id, summary: false });
        soon(request).await.expect("a socket").into_inner().socket.expect("present")
    }

    async fn channel(&self) -> Option<pb::Channel> {
        self.channel_to(&format!("ipv4:{}", self.address)).await
    }

    async fn subchannels(&self, channel: &pb::Channel) -> Vec<pb::Subchannel> {
        let mut subchannels = Vec::new();
        for pb::SubchannelRef { subchannel_id, .. } in channel.subchannel_ref.clone() {
            let subchannel = self.client.get_subchannel(pb::GetSubchannelRequest { subchannel_id }).await;
            subchannels.push(subchannel.expect("a subchannel").into_inner().subchannel.expect("present"));
        }
        subchannels
    }

    async fn channel_to(&self, target: &str) -> Option<pb::Channel> {
        let request = pb::GetTopChannelsRequest::default();
        let page = soon(self.client.get_top_channels(request)).await.expect("a page").into_inner();
        page.channel.into_iter().find(|channel| channel.data.as_ref().expect("data").target == target)
    }
}

fn id_of(server: &pb::Server) -> i64 {
    server.r#ref.as_ref().expect("a number").server_id
}

fn calls_of_server(server: &pb::Server) -> Counts {
    let data = server.data.as_ref().expect("data");
    [data.calls_started, data.calls_succeeded, data.calls_failed]
}

fn calls(data: Option<&pb::ChannelData>) -> Counts {
    let data = data.expect("data");
    [data.calls_started, data.calls_succeeded, data.calls_failed]
}

/// Descriptions of the latest events.
fn descriptions(data: &pb::ChannelData) -> Vec<&str> {
    let events = &data.trace.as_ref().expect("a trace").events;
    events.iter().map(|event| event.description.as_str()).collect()
}

fn streams(socket: &pb::Socket) -> Counts {
    let data = socket.data.as_ref().expect("data");
    [data.streams_started, data.streams_succeeded, data.streams_failed]
}

fn request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

/// Starts a server with a fixed channel to it, `ipv4:ADDRESS`.
async fn subject() -> (Running, Channel) {
    let server = Running::start(|server| server.add_service(HealthReporter::new().service())).await;
    let channel = Channel::builder(format!("ipv4:{}", server.address)).lanes(1).connect().await;
    (server, channel.expect("it listens"))
}

/// Polls until the condition holds, because the other end is notified a moment later.
async fn wait_until(what: &str, is_reached: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_reached().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "never: {what}");
}

#[tokio::test]
async fn calls_are_counted_by_outcome_on_client_and_server() {
    let started = SystemTime::now();
    let (server, channel) = subject().await;
    let queries = ChannelzQueries::new(&server).await;
    let client = HealthClient::new(channel.clone());

    for _ in 0..3 {
        health::check(&channel, "").await.expect("it serves");
    }
    for _ in 0..2 {
        assert_eq!(client.check(request("a.B")).await.expect_err("unknown").code(), Code::NotFound);
    }
    let mut cancelled = client.watch(request("")).await.expect("a watch").into_inner();
    cancelled.message().await.expect("a status");
    let mut open = client.watch(request("")).await.expect("a watch").into_inner();
    open.message().await.expect("a status");
    drop(cancelled);

    // Seven calls: three OK, two with a status, one cancelled, one in progress.
    let expected = [7, 3, 3];
    wait_until("the server hears of the call that is cut off", async || {
        calls_of_server(&queries.server().await.expect("it runs")) == expected
    })
    .await;
    let shown = queries.channel().await.expect("the stream is open");
    let data = shown.data.as_ref();
    assert_eq!(calls(data), expected);
    assert_eq!(data.expect("data").state.expect("one").state(), State::Ready);

    let subchannels = queries.subchannels(&shown).await;
    let [subchannel] = subchannels.as_slice() else { panic!("one server: {subchannels:?}") };
    assert_eq!(calls(subchannel.data.as_ref()), expected);
    for data in [data, subchannel.data.as_ref()] {
        let data = data.expect("data");
        let last: SystemTime = data.last_call_started_timestamp.expect("one").try_into().expect("a time");
        assert!(last + Duration::from_secs(2) > started && last < SystemTime::now() + Duration::from_secs(2));
        assert_eq!(descriptions(data)[0], "state changed from IDLE to CONNECTING");
    }

    // A stream that ends with a status counts as succeeded.
    let of_client = queries.socket(subchannel.socket_ref[0].socket_id).await;
    assert_eq!(streams(&of_client), [7, 5, 1]);
    let sockets = queries.sockets().await;
    // The other socket belongs to the test server's own channel, which makes no calls.
    let of_server = sockets.iter().find(|socket| streams(socket)[0] > 0).expect("it carries calls");
    assert_eq!((sockets.len(), streams(of_server)), (2, [7, 5, 1]));

    let data = of_server.data.as_ref().expect("data");
    let opened: SystemTime =
        data.last_remote_stream_created_timestamp.expect("one").try_into().expect("a time");
    // Resolution is one second, and two different clocks are involved.
    assert!(opened + Duration::from_secs(2) > started && opened < SystemTime::now() + Duration::from_secs(2));
    assert!(data.local_flow_control_window > Some(0) && data.remote_flow_control_window > Some(0));
    assert!(data.last_local_stream_created_timestamp.is_none());
}

#[tokio::test]
async fn ended_calls_stay_counted() {
    let (server, channel) = subject().await;
    let queries = ChannelzQueries::new(&server).await;
    health::check(&channel, "").await.expect("it serves");
    let mut watched =
        HealthClient::new(channel.clone()).watch(request("")).await.expect("a watch").into_inner();
    watched.message().await.expect("a status");
    drop((channel, watched));
    wait_until("the channel's connection goes", async || queries.sockets().await.len() == 1).await;
    assert_eq!(calls_of_server(&queries.server().await.expect("it runs")), [2, 1, 1]);
    // Snapshots in parallel tests keep channels and servers alive briefly.
    wait_until("the channel goes", async || queries.channel().await.is_none()).await;
    server.stop().await;
    wait_until("the server goes", async || queries.server().await.is_none()).await;
}

#[tokio::test]
async fn sockets_have_local_and_remote_addresses() {
    let (server, channel) = subject().await;
    let queries = ChannelzQueries::new(&server).await;
    health::check(&channel, "").await.expect("it serves");
    let port: i32 = server.address.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let listening = Some(Address::TcpipAddress(TcpIpAddress { ip_address: vec![127, 0, 0, 1], port }));
    let of = |address: Option<pb::Address>| address.and_then(|address| address.address);

    let listening_id = queries.server().await.expect("it runs").listen_socket[0].socket_id;
    let socket = queries.socket(listening_id).await;
    assert_eq!((of(socket.local), of(socket.remote), socket.data), (listening.clone(), None, None));

    for socket in queries.sockets().await {
        assert_eq!(of(socket.local), listening);
        let Some(Address::TcpipAddress(remote)) = of(socket.remote) else { panic!("TCP") };
        assert!(remote.ip_address == [127, 0, 0, 1] && remote.port != port);
    }
    let shown = queries.channel().await.expect("the stream is open");
    let socket = queries.subchannels(&shown).await[0].socket_ref[0].socket_id;
    assert_eq!(of(queries.socket(socket).await.remote), listening);
}

#[tokio::test]
async fn servers_of_a_balanced_channel_are_subchannels() {
    const CLOSED: &str = "127.0.0.1:1";
    let servers =
        [0, 1].map(|_| Running::start(|server| server.add_service(HealthReporter::new().service())));
    let [one, two] = servers;
    let (one, two) = (one.await, two.await);
    let queries = ChannelzQueries::new(&one).await;
    let [first, second]: [SocketAddr; 2] =
        [&one, &two].map(|server| server.address.parse().expect("an address"));
    let list = EndpointList::new([first, second, CLOSED.parse().expect("an address")]);
    let target = "dns:///a-fleet.test:1";
    let channel = Channel::builder(target).resolver(list.clone()).load_balancing(PolicyConfig::RoundRobin);
    let channel = channel.lanes(1).connect().await.expect("two listen");
    let shown = async || queries.channel_to(target).await.expect("it is there");
    let state =
        |subchannel: &pb::Subchannel| subchannel.data.as_ref().expect("data").state.expect("a state").state();
    wait_until("all servers were tried", async || {
        let states: Vec<_> = queries.subchannels(&shown().await).await.iter().map(state).collect();
        states == [State::Ready, State::Ready, State::TransientFailure]
    })
    .await;
    for _ in 0..6 {
        health::check(&channel, "").await.expect("they serve");
    }

    let channelz_channel = shown().await;
    let data = channelz_channel.data.as_ref().expect("data");
    assert_eq!((calls(Some(data)), data.state.expect("a state").state()), ([6, 6, 0], State::Ready));
    let subchannels = queries.subchannels(&channelz_channel).await;
    let names: Vec<_> =
        subchannels.iter().map(|it| it.r#ref.as_ref().expect("a name").name.as_str()).collect();
    assert_eq!(names, [&one.address, &two.address, CLOSED]);
    for (subchannel, server) in subchannels.iter().zip([&one, &two]) {
        let data = subchannel.data.as_ref().expect("data");
        assert_eq!((calls(Some(data)), data.target.as_str()), ([3, 3, 0], server.address.as_str()));
        assert!(data.last_call_started_timestamp.is_some());
        let expected = [
            "state changed from IDLE to CONNECTING".to_owned(),
            format!("connected to {}", server.address),
            "state changed from CONNECTING to READY".to_owned(),
        ];
        assert_eq!(descriptions(data), expected);
        let [socket] = subchannel.socket_ref.as_slice() else { panic!("a lane: {subchannel:?}") };
        assert_eq!(streams(&queries.socket(socket.socket_id).await), [3, 3, 0]);
    }
    let data = subchannels[2].data.as_ref().expect("data");
    assert!(subchannels[2].socket_ref.is_empty() && data.last_call_started_timestamp.is_none());
    let failed = descriptions(data)[1];
    assert!(failed.starts_with("failed to connect to 127.0.0.1:1: "), "{failed}");
    let severity = data.trace.as_ref().expect("a trace").events[1].severity();
    assert_eq!(severity, pb::channel_trace_event::Severity::CtWarning);

    list.set([second]);
    wait_until("the others leave", async || shown().await.subchannel_ref.len() == 1).await;
    let data = shown().await.data.expect("data");
    assert_eq!(calls(Some(&data)), [6, 6, 0], "the calls of a removed server still count");
    let trace = data.trace.as_ref().expect("a trace");
    let removed =
        trace.events.iter().find(|event| event.description == format!("endpoint removed: {CLOSED}"));
    let Some(pb::channel_trace_event::ChildRef::SubchannelRef(child)) =
        removed.and_then(|event| event.child_ref.as_ref())
    else {
        panic!("{trace:?}")
    };
    assert_eq!(Some(child), subchannels[2].r#ref.as_ref());
}

#[tokio::test]
async fn unknown_ids_return_not_found() {
    let (server, _channel) = subject().await;
    let queries = ChannelzQueries::new(&server).await;
    let client = &queries.client;
    let check = |outcome: Option<thalweg::Status>, code: Code, message: &str| {
        let status = outcome.expect(message);
        assert_eq!((status.code(), status.message()), (code, message));
    };
    for id in [0, -1, i64::MAX] {
        let request = pb::GetServerSocketsRequest { server_id: id, ..Default::default() };
        let sockets = client.get_server_sockets(request).await.err();
        check(sockets, Code::NotFound, &format!("unknown server {id}"));
        let server = client.get_server(pb::GetServerRequest { server_id: id }).await.err();
        check(server, Code::NotFound, &format!("unknown server {id}"));
        let channel = client.get_channel(pb::GetChannelRequest { channel_id: id }).await.err();
        check(channel, Code::NotFound, &format!("unknown channel {id}"));
        let lane = client.get_subchannel(pb::GetSubchannelRequest { subchannel_id: id }).await.err();
        check(lane, Code::NotFound, &format!("unknown subchannel {id}"));
        let socket = client.get_socket(pb::GetSocketRequest { socket_id: id, summary: true }).await.err();
        check(socket, Code::NotFound, &format!("unknown socket {id}"));
    }
    let negative = pb::GetServersRequest { start_server_id: -1, max_results: 0 };
    let message = "invalid start_server_id -1; it must not be negative";
    check(client.get_servers(negative).await.err(), Code::InvalidArgument, message);
    let negative = pb::GetTopChannelsRequest { start_channel_id: 0, max_results: -5 };
    let message = "invalid max_results -5; it must not be negative";
    check(client.get_top_channels(negative).await.err(), Code::InvalidArgument, message);
    let past_the_end = pb::GetServersRequest { start_server_id: i64::MAX, max_results: 0 };
    let page = client.get_servers(past_the_end).await.expect("a page").into_inner();
    assert!(page.server.is_empty() && page.end);
}
