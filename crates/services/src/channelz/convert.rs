//! Converts internal data to channelz messages.

use std::net::SocketAddr;
use std::time::SystemTime;

use thalweg::ListenAddress;
use thalweg::channel::ConnectivityState;
use thalweg::inventory::{
    ChannelSnapshot, Counts, EndpointSnapshot, EventsSnapshot, LoggedEvent, ServerSnapshot, SocketSnapshot,
    Traffic,
};

use super::pb::address::{Address as AddressKind, OtherAddress, TcpIpAddress, UdsAddress};
use super::pb::channel_connectivity_state::State;
use super::pb::channel_trace_event::{ChildRef, Severity};
use super::pb::{
    Address, Channel, ChannelConnectivityState, ChannelData, ChannelRef, ChannelTrace, ChannelTraceEvent,
    Server, ServerData, ServerRef, Socket, SocketData, SocketRef, Subchannel, SubchannelRef,
};

/// Converts an ID or counter. Both stay within `i64` in practice.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn server(server: &ServerSnapshot) -> Server {
    let Counts { started, succeeded, failed, .. } = server.calls;
    let listening = |(id, address): &(u64, ListenAddress)| socket_ref(*id, address.to_string());
    let name = server.listening.first().map_or_else(String::new, |(_, address)| address.to_string());
    Server {
        r#ref: Some(ServerRef { server_id: number(server.id), name }),
        data: Some(ServerData {
            trace: None,
            calls_started: number(started),
            calls_succeeded: number(succeeded),
            calls_failed: number(failed),
            last_call_started_timestamp: server.last_call.map(Into::into),
        }),
        listen_socket: server.listening.iter().map(listening).collect(),
    }
}

pub(super) fn channel(channel: &ChannelSnapshot) -> Channel {
    let ChannelSnapshot { id, target, state, calls, last_call, events, endpoints, .. } = channel;
    let subchannel = |endpoint: &EndpointSnapshot| subchannel_ref(endpoint.id, endpoint.name.clone());
    Channel {
        r#ref: Some(ChannelRef { channel_id: number(*id), name: target.clone() }),
        data: Some(channel_data(target, *state, *calls, *last_call, events)),
        subchannel_ref: endpoints.iter().map(subchannel).collect(),
        ..Channel::default()
    }
}

pub(super) fn subchannel(endpoint: &EndpointSnapshot) -> Subchannel {
    let EndpointSnapshot { id, name, state, calls, last_call, events, lanes, .. } = endpoint;
    let sockets = lanes.iter().flat_map(|lane| &lane.sockets);
    Subchannel {
        r#ref: Some(subchannel_ref(*id, name.clone())),
        data: Some(channel_data(name, *state, *calls, *last_call, events)),
        socket_ref: sockets.map(|id| socket_ref(*id, String::new())).collect(),
        ..Subchannel::default()
    }
}

pub(super) fn socket(socket: &SocketSnapshot) -> Socket {
    let name = match (&socket.peer, &socket.local) {
        (Some(peer), _) => peer.clone(),
        (None, local) => local.as_ref().map_or_else(String::new, ToString::to_string),
    };
    Socket {
        r#ref: Some(socket_ref(socket.id, name)),
        data: socket.traffic.as_ref().map(socket_data),
        local: socket.local.as_ref().map(address),
        remote: socket.peer.as_deref().map(peer_address),
        ..Socket::default()
    }
}

pub(super) fn socket_ref(id: u64, name: String) -> SocketRef {
    SocketRef { socket_id: number(id), name }
}

fn subchannel_ref(id: u64, name: String) -> SubchannelRef {
    SubchannelRef { subchannel_id: number(id), name }
}

fn channel_data(
    target: &str,
    state: ConnectivityState,
    calls: Counts,
    last_call: Option<SystemTime>,
    events: &EventsSnapshot,
) -> ChannelData {
    let state = State::from_str_name(state.name()).unwrap_or(State::Unknown);
    ChannelData {
        state: Some(ChannelConnectivityState { state: state.into() }),
        target: target.to_owned(),
        trace: Some(trace(events)),
        calls_started: number(calls.started),
        calls_succeeded: number(calls.succeeded),
        calls_failed: number(calls.failed),
        last_call_started_timestamp: last_call.map(Into::into),
        ..ChannelData::default()
    }
}

fn trace(events: &EventsSnapshot) -> ChannelTrace {
    let event = |event: &LoggedEvent| {
        let severity = if event.is_failure { Severity::CtWarning } else { Severity::CtInfo };
        let child = |(id, name): &(u64, String)| ChildRef::SubchannelRef(subchannel_ref(*id, name.clone()));
        ChannelTraceEvent {
            description: event.description.clone(),
            severity: severity.into(),
            timestamp: Some(event.at.into()),
            child_ref: event.endpoint.as_ref().map(child),
        }
    };
    ChannelTrace {
        num_events_logged: number(events.logged),
        creation_timestamp: Some(events.created_at.into()),
        events: events.latest.iter().map(event).collect(),
    }
}

fn socket_data(traffic: &Traffic) -> SocketData {
    let Counts { started, succeeded, failed, .. } = traffic.streams;
    let last_stream = traffic.last_stream.map(Into::into);
    let (local, remote) = if traffic.is_client { (last_stream, None) } else { (None, last_stream) };
    SocketData {
        streams_started: number(started),
        streams_succeeded: number(succeeded),
        streams_failed: number(failed),
        keep_alives_sent: number(traffic.keepalives_sent),
        last_local_stream_created_timestamp: local,
        last_remote_stream_created_timestamp: remote,
        local_flow_control_window: Some(traffic.send_window),
        remote_flow_control_window: Some(traffic.receive_window),
        ..SocketData::default()
    }
}

fn address(address: &ListenAddress) -> Address {
    let other = |name: String| AddressKind::OtherAddress(OtherAddress { name, value: None });
    let kind = match address {
        ListenAddress::Tcp(text) => match text.parse::<SocketAddr>() {
            Ok(at) => {
                AddressKind::TcpipAddress(TcpIpAddress { ip_address: octets(at), port: at.port().into() })
            }
            Err(_) => other(text.clone()),
        },
        ListenAddress::Unix(path) => {
            AddressKind::UdsAddress(UdsAddress { filename: path.display().to_string() })
        }
        ListenAddress::UnixAbstract(_) => other(address.to_string()),
    };
    Address { address: Some(kind) }
}

fn octets(address: SocketAddr) -> Vec<u8> {
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Returns the peer's address, or its name if it has none: a byte stream, or a connecting Unix socket.
fn peer_address(peer: &str) -> Address {
    match peer.parse() {
        Ok(parsed) => address(&parsed),
        Err(_) => Address {
            address: Some(AddressKind::OtherAddress(OtherAddress { name: peer.to_owned(), value: None })),
        },
    }
}
