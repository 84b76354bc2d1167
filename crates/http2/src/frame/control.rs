//! Small frames: PRIORITY, RST_STREAM, PING, GOAWAY, WINDOW_UPDATE.

use super::{Flags, FrameHeader, Kind, emit};
use crate::error::ErrorCode;
use crate::stream::StreamId;

/// A priority (RFC 9113 §6.3). Deprecated, so only the part that can be invalid is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The stream that this one depends on.
    pub dependency: StreamId,
}

impl Priority {
    /// The length of a priority, in bytes.
    pub const LEN: usize = 5;

    /// Reads dependency (with its exclusive bit) and weight.
    pub fn parse(payload: [u8; Priority::LEN]) -> Priority {
        let [d0, d1, d2, d3, _weight] = payload;
        Priority { dependency: StreamId::new(u32::from_be_bytes([d0, d1, d2, d3])) }
    }
}

/// The fixed part of a GOAWAY (RFC 9113 §6.8); debug data follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoAway {
    /// The last stream that the sender may have served.
    pub last_stream: StreamId,
    /// The error code.
    pub code: ErrorCode,
}

impl GoAway {
    /// Parses the fixed part and the debug data; `None` if the payload is too short.
    pub fn parse(payload: &[u8]) -> Option<(GoAway, &[u8])> {
        let ([s0, s1, s2, s3, c0, c1, c2, c3], debug) = payload.split_first_chunk()?;
        let last_stream = StreamId::new(u32::from_be_bytes([*s0, *s1, *s2, *s3]));
        let code = ErrorCode::from(u32::from_be_bytes([*c0, *c1, *c2, *c3]));
        Some((GoAway { last_stream, code }, debug))
    }

    /// Appends the frame.
    pub fn emit(self, debug: &[u8], out: &mut Vec<u8>) {
        let len = 8 + debug.len() as u32;
        FrameHeader { len, kind: Kind::GoAway, flags: Flags::NONE, stream: StreamId::CONNECTION }.emit(out);
        out.extend_from_slice(&self.last_stream.get().to_be_bytes());
        out.extend_from_slice(&u32::from(self.code).to_be_bytes());
        out.extend_from_slice(debug);
    }
}

/// Appends an RST_STREAM (RFC 9113 §6.4).
pub fn rst_stream(stream: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
    emit(Kind::RstStream, Flags::NONE, stream, &u32::from(code).to_be_bytes(), out);
}

/// Appends a PING or its acknowledgement (RFC 9113 §6.7).
pub fn ping(ack: bool, payload: [u8; 8], out: &mut Vec<u8>) {
    emit(Kind::Ping, Flags::NONE.with_if(ack, Flags::ACK), StreamId::CONNECTION, &payload, out);
}

/// Appends a WINDOW_UPDATE of `increment` bytes (RFC 9113 §6.9).
pub fn window_update(stream: StreamId, increment: u32, out: &mut Vec<u8>) {
    emit(Kind::WindowUpdate, Flags::NONE, stream, &increment.to_be_bytes(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goaway_round_trips() {
        let sent = GoAway { last_stream: StreamId::new(7), code: ErrorCode::EnhanceYourCalm };
        let mut wire = Vec::new();
        sent.emit(b"too_many_pings", &mut wire);
        assert_eq!(GoAway::parse(&wire[9..]), Some((sent, &b"too_many_pings"[..])));
        assert_eq!(GoAway::parse(&wire[9..16]), None);
    }

    #[test]
    fn exclusive_bit_is_not_part_of_the_dependency() {
        assert_eq!(Priority::parse([0x80, 0, 0, 5, 16]), Priority { dependency: StreamId::new(5) });
    }
}
