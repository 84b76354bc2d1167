//! The servers and channels of the process as grpcio-channelz expects them: messages of `grpc.channelz.v1` in JSON.
//!
//! The fields are those of the channelz service in `thalweg-services`, in the JSON mapping of proto3: 64-bit numbers are
//! strings, and bytes are Base64.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use thalweg_engine::inventory::{
    self, ChannelSnapshot, Counts, EndpointSnapshot, EventsSnapshot, LoggedEvent, ServerSnapshot,
    SocketSnapshot, Traffic,
};
use thalweg_engine::{ConnectivityState, ListenAddress};

/// Maximum number of results in a page.
const PAGE_LEN_MAX: usize = 100;

/// Returns a `GetTopChannelsResponse` with the channels from `start` on.
#[pyfunction]
pub(crate) fn channelz_get_top_channels(start: u64) -> String {
    let (channels, end) = page(inventory::channels(), start, PAGE_LEN_MAX, |channel| channel.id);
    json!({ "channel": channels.iter().map(channel).collect::<Vec<_>>(), "end": end }).to_string()
}

/// Returns a `GetServersResponse` with the servers from `start` on.
#[pyfunction]
pub(crate) fn channelz_get_servers(start: u64) -> String {
    let (servers, end) = page(inventory::servers(), start, PAGE_LEN_MAX, |server| server.id);
    json!({ "server": servers.iter().map(server).collect::<Vec<_>>(), "end": end }).to_string()
}

/// Returns a `GetServerResponse`.
#[pyfunction]
pub(crate) fn channelz_get_server(id: u64) -> PyResult<String> {
    Ok(json!({ "server": server(&find_server(id)?) }).to_string())
}

/// Returns a `GetServerSocketsResponse` with the connections from `start` on. With 0 there are as many as a page has.
#[pyfunction]
pub(crate) fn channelz_get_server_sockets(id: u64, start: u64, max_results: usize) -> PyResult<String> {
    let len_max = if max_results == 0 { PAGE_LEN_MAX } else { max_results.min(PAGE_LEN_MAX) };
    let (sockets, end) = page(find_server(id)?.sockets, start, len_max, |socket| *socket);
    let references: Vec<_> = sockets.into_iter().map(|id| reference("socketId", id, "")).collect();
    Ok(json!({ "socketRef": references, "end": end }).to_string())
}

/// Returns a `GetChannelResponse`.
#[pyfunction]
pub(crate) fn channelz_get_channel(id: u64) -> PyResult<String> {
    let found = inventory::channels().into_iter().find(|channel| channel.id == id);
    Ok(json!({ "channel": channel(&found.ok_or_else(|| unknown("channel", id))?) }).to_string())
}

/// Returns a `GetSubchannelResponse`.
#[pyfunction]
pub(crate) fn channelz_get_subchannel(id: u64) -> PyResult<String> {
    let mut endpoints = inventory::channels().into_iter().flat_map(|channel| channel.endpoints);
    let found = endpoints.find(|endpoint| endpoint.id == id);
    Ok(json!({ "subchannel": subchannel(&found.ok_or_else(|| unknown("subchannel", id))?) }).to_string())
}

/// Returns a `GetSocketResponse`.
#[pyfunction]
pub(crate) fn channelz_get_socket(id: u64) -> PyResult<String> {
    let found = inventory::socket(id).ok_or_else(|| unknown("socket", id))?;
    Ok(json!({ "socket": socket(&found) }).to_string())
}

fn find_server(id: u64) -> PyResult<ServerSnapshot> {
    inventory::servers().into_iter().find(|server| server.id == id).ok_or_else(|| unknown("server", id))
}

fn unknown(kind: &str, id: u64) -> PyErr {
    PyValueError::new_err(format!("unknown {kind} {id}"))
}

/// Returns a page of a list sorted by identifier, and whether it is the last.
fn page<T>(all: Vec<T>, start: u64, len_max: usize, id: impl Fn(&T) -> u64) -> (Vec<T>, bool) {
    let mut rest = all.into_iter().skip_while(|entry| id(entry) < start);
    let page = rest.by_ref().take(len_max).collect();
    (page, rest.next().is_none())
}

fn reference(key: &str, id: u64, name: &str) -> Value {
    json!({ key: id.to_string(), "name": name })
}

fn server(server: &ServerSnapshot) -> Value {
    let listening = |(id, address): &(u64, ListenAddress)| reference("socketId", *id, &address.to_string());
    let name = server.listening.first().map_or_else(String::new, |(_, address)| address.to_string());
    json!({
        "ref": reference("serverId", server.id, &name),
        "data": calls(server.calls, server.last_call),
        "listenSocket": server.listening.iter().map(listening).collect::<Vec<_>>(),
    })
}

/// Returns the fields about calls that servers and channels share.
fn calls(calls: Counts, last: Option<SystemTime>) -> Value {
    json!({
        "callsStarted": calls.started.to_string(),
        "callsSucceeded": calls.succeeded.to_string(),
        "callsFailed": calls.failed.to_string(),
        "lastCallStartedTimestamp": last.map(timestamp),
    })
}

fn channel(channel: &ChannelSnapshot) -> Value {
    let ChannelSnapshot { id, target, state, calls, last_call, events, endpoints, .. } = channel;
    let subchannel = |endpoint: &EndpointSnapshot| reference("subchannelId", endpoint.id, &endpoint.name);
    json!({
        "ref": reference("channelId", *id, target),
        "data": channel_data(target, *state, *calls, *last_call, events),
        "subchannelRef": endpoints.iter().map(subchannel).collect::<Vec<_>>(),
    })
}

fn subchannel(endpoint: &EndpointSnapshot) -> Value {
    let EndpointSnapshot { id, name, state, calls, last_call, events, lanes, .. } = endpoint;
    let sockets = lanes.iter().flat_map(|lane| &lane.sockets);
    json!({
        "ref": reference("subchannelId", *id, name),
        "data": channel_data(name, *state, *calls, *last_call, events),
        "socketRef": sockets.map(|id| reference("socketId", *id, "")).collect::<Vec<_>>(),
    })
}

fn channel_data(
    target: &str,
    state: ConnectivityState,
    counts: Counts,
    last_call: Option<SystemTime>,
    events: &EventsSnapshot,
) -> Value {
    let mut data = calls(counts, last_call);
    data["state"] = json!({ "state": state.name() });
    data["target"] = target.into();
    data["trace"] = json!({
        "numEventsLogged": events.logged.to_string(),
        "creationTimestamp": timestamp(events.created_at),
        "events": events.latest.iter().map(event).collect::<Vec<_>>(),
    });
    data
}

fn event(event: &LoggedEvent) -> Value {
    let mut shown = json!({
        "description": event.description,
        "severity": if event.is_failure { "CT_WARNING" } else { "CT_INFO" },
        "timestamp": timestamp(event.at),
    });
    if let Some((id, name)) = &event.endpoint {
        shown["subchannelRef"] = reference("subchannelId", *id, name);
    }
    shown
}

fn socket(socket: &SocketSnapshot) -> Value {
    let local = socket.local.as_ref().map(ToString::to_string);
    let name = socket.peer.clone().or(local).unwrap_or_default();
    let mut shown = json!({ "ref": reference("socketId", socket.id, &name) });
    if let Some(traffic) = &socket.traffic {
        shown["data"] = socket_data(traffic);
    }
    if let Some(local) = &socket.local {
        shown["local"] = address(local);
    }
    if let Some(peer) = &socket.peer {
        // A byte stream, or a connecting Unix socket, has a name only.
        shown["remote"] = peer.parse().map_or_else(|_| other_address(peer), |parsed| address(&parsed));
    }
    shown
}

fn socket_data(traffic: &Traffic) -> Value {
    let last = traffic.last_stream.map(timestamp);
    let (local, remote) = if traffic.is_client { (last, None) } else { (None, last) };
    json!({
        "streamsStarted": traffic.streams.started.to_string(),
        "streamsSucceeded": traffic.streams.succeeded.to_string(),
        "streamsFailed": traffic.streams.failed.to_string(),
        "keepAlivesSent": traffic.keepalives_sent.to_string(),
        "lastLocalStreamCreatedTimestamp": local,
        "lastRemoteStreamCreatedTimestamp": remote,
        "localFlowControlWindow": traffic.send_window.to_string(),
        "remoteFlowControlWindow": traffic.receive_window.to_string(),
    })
}

fn address(address: &ListenAddress) -> Value {
    match address {
        ListenAddress::Tcp(text) => match text.parse::<SocketAddr>() {
            Ok(at) => json!({ "tcpipAddress": { "ipAddress": octets(at), "port": at.port() } }),
            Err(_) => other_address(text),
        },
        ListenAddress::Unix(path) => json!({ "udsAddress": { "filename": path.display().to_string() } }),
        ListenAddress::UnixAbstract(_) => other_address(&address.to_string()),
    }
}

fn other_address(name: &str) -> Value {
    json!({ "otherAddress": { "name": name } })
}

fn octets(address: SocketAddr) -> String {
    let base64 = base64::engine::general_purpose::STANDARD;
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => base64.encode(ip.octets()),
        std::net::IpAddr::V6(ip) => base64.encode(ip.octets()),
    }
}

/// Returns the time in the form of RFC 3339.
fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days are counted from 0000-03-01, so that leap days come last; an era of 400 years has 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (year, nanos) = (era * 400 + year + next_year, since.subsec_nanos());
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}
