//! Texts that say why a connection ended, for the status of its calls.

use std::io;

use crate::connection::state::State;

/// Returns the message for a connection that is over. `identified`: the peer's protocol, if it is [not
/// HTTP/2](non_http2_peer).
pub(super) fn text(
    peer: &str,
    outcome: &io::Result<()>,
    identified: Option<&str>,
    state: &State,
    is_client: bool,
) -> String {
    let error = match (outcome, identified) {
        (Ok(()), _) => return format!("connection to {peer} was closed"),
        (Err(_), Some(description)) => return format!("{peer}: {description}"),
        (Err(error), None) => error,
    };
    let how = match error.kind() {
        io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => format!("{peer} closed the connection"),
        _ => format!("connection to {peer} lost: {error}"),
    };
    let hint = if state.http2.settings_received() {
        if is_client { hint_at_cut(error.kind()) } else { "" }
    } else if error.get_ref().is_some() {
        // The text of a lower layer is complete.
        ""
    } else {
        " (before it sent HTTP/2 SETTINGS; check that it is a gRPC server without TLS)"
    };
    match &state.goaway_debug {
        Some(goaway_debug) => format!("{how} after GOAWAY, {goaway_debug}"),
        None => how + hint,
    }
}

/// Identifies the peer's protocol by its first bytes, if it has not sent SETTINGS.
pub(super) fn non_http2_peer(state: &State, first: &[u8], is_client: bool) -> Option<&'static str> {
    if state.http2.settings_received() { None } else { identify_non_http2_peer(first, is_client) }
}

/// Returns a possible reason why a server closed the connection without GOAWAY.
fn hint_at_cut(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => " (the server may have been killed, or the connection cut)",
        _ => "",
    }
}

/// Identifies the peer's protocol by its first bytes, if they are known and not HTTP/2.
fn identify_non_http2_peer(first: &[u8], is_client: bool) -> Option<&'static str> {
    // TLS records: alert (21) or handshake (22), version 3.x.
    let is_tls = matches!(first, [0x15 | 0x16, 0x03, ..]);
    match (is_client, is_tls) {
        (true, true) => Some("the server uses TLS, and this channel does not (use https://)"),
        (true, false) if first.starts_with(b"HTTP/1.") => {
            Some("the server speaks HTTP/1.x, not HTTP/2 (check that this is a gRPC port)")
        }
        (false, true) => Some("the client uses TLS, and this port does not"),
        _ => None,
    }
}
