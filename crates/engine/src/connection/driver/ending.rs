//! Why a connection ended, in words for the calls on it.

use std::io;

use crate::connection::state::State;

/// What is said of a connection that is over. `identified`: what is at the other end, if that is [no HTTP/2
/// peer](non_http2_peer).
pub(super) fn message(
    peer: &str,
    outcome: &io::Result<()>,
    identified: Option<&str>,
    state: &State,
    is_client: bool,
) -> String {
    let error = match (outcome, identified) {
        (Ok(()), _) => return format!("connection to {peer} was closed"),
        (Err(_), Some(what)) => return format!("{peer}: {what}"),
        (Err(error), None) => error,
    };
    let how = match error.kind() {
        io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => format!("{peer} closed the connection"),
        _ => format!("connection to {peer} lost: {error}"),
    };
    let hint = if state.http2.settings_received() {
        if is_client { hint_at_cut(error.kind()) } else { "" }
    } else if error.get_ref().is_some() {
        // A layer below that has a text of its own has said it all.
        ""
    } else {
        " (before it sent HTTP/2 SETTINGS: is it a gRPC server, and without TLS?)"
    };
    match &state.farewell {
        Some(farewell) => format!("{how} after GOAWAY, {farewell}"),
        None => how + hint,
    }
}

/// Names what is at the other end, if that has not spoken HTTP/2, and its first bytes are well known.
pub(super) fn non_http2_peer(state: &State, first: &[u8], is_client: bool) -> Option<&'static str> {
    if state.http2.settings_received() { None } else { identify_non_http2_peer(first, is_client) }
}

/// What it may mean that a server's connection ended without a word.
fn hint_at_cut(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => " (was the server killed, or the connection cut on the way?)",
        _ => "",
    }
}

/// Names what is at the other end, if its first bytes are not HTTP/2's but well known.
fn identify_non_http2_peer(first: &[u8], is_client: bool) -> Option<&'static str> {
    // TLS records: alert (21) or handshake (22), version 3.x.
    let is_tls = matches!(first, [0x15 | 0x16, 0x03, ..]);
    match (is_client, is_tls) {
        (true, true) => Some("the server speaks TLS, and this channel does not (is https:// missing?)"),
        (true, false) if first.starts_with(b"HTTP/1.") => {
            Some("the server speaks HTTP/1.x, not HTTP/2: is this a gRPC port?")
        }
        (false, true) => Some("the client speaks TLS, and this port does not"),
        _ => None,
    }
}
