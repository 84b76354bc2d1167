//! The header of every frame (RFC 9113 §4.1).

use crate::stream::StreamId;

/// Length of a frame header in bytes.
pub const FRAME_HEADER_LEN: usize = 9;

/// The client's connection preface (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Minimum and default of SETTINGS_MAX_FRAME_SIZE, in bytes.
pub const MAX_FRAME_SIZE_MIN: u32 = 16_384;

/// Maximum of SETTINGS_MAX_FRAME_SIZE, in bytes.
pub const MAX_FRAME_SIZE_MAX: u32 = (1 << 24) - 1;

/// The type of a frame (RFC 9113 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// §6.1
    Data,
    /// §6.2
    Headers,
    /// §6.3
    Priority,
    /// §6.4
    RstStream,
    /// §6.5
    Settings,
    /// §6.6
    PushPromise,
    /// §6.7
    Ping,
    /// §6.8
    GoAway,
    /// §6.9
    WindowUpdate,
    /// §6.10
    Continuation,
    /// An unknown type, to be ignored (§5.5).
    Unknown(u8),
}

impl From<u8> for Kind {
    fn from(kind: u8) -> Kind {
        match kind {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::RstStream,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            other => Kind::Unknown(other),
        }
    }
}

impl From<Kind> for u8 {
    fn from(kind: Kind) -> u8 {
        match kind {
            Kind::Data => 0,
            Kind::Headers => 1,
            Kind::Priority => 2,
            Kind::RstStream => 3,
            Kind::Settings => 4,
            Kind::PushPromise => 5,
            Kind::Ping => 6,
            Kind::GoAway => 7,
            Kind::WindowUpdate => 8,
            Kind::Continuation => 9,
            Kind::Unknown(other) => other,
        }
    }
}

/// The flags of a frame. Their meaning depends on its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// The sender sends nothing more on this stream (DATA, HEADERS).
    pub const END_STREAM: Flags = Flags(0x1);
    /// An acknowledgement (SETTINGS, PING).
    pub const ACK: Flags = Flags(0x1);
    /// The header block ends here (HEADERS, CONTINUATION).
    pub const END_HEADERS: Flags = Flags(0x4);
    /// The payload starts with a padding length (DATA, HEADERS).
    pub const PADDED: Flags = Flags(0x8);
    /// A priority precedes the header block (HEADERS).
    pub const PRIORITY: Flags = Flags(0x20);

    /// Returns whether all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Adds `other` if `set`.
    pub const fn with_if(self, set: bool, other: Flags) -> Flags {
        if set { self.with(other) } else { self }
    }
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload in bytes; 24 bits.
    pub len: u32,
    /// The frame type.
    pub kind: Kind,
    /// The flags.
    pub flags: Flags,
    /// The stream; 0 for the connection.
    pub stream: StreamId,
}

impl FrameHeader {
    /// Parses a frame header. All values are valid.
    #[inline]
    pub fn parse(bytes: &[u8; FRAME_HEADER_LEN]) -> FrameHeader {
        FrameHeader {
            len: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: Kind::from(bytes[3]),
            flags: Flags(bytes[4]),
            stream: StreamId::new(u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]])),
        }
    }

    /// Returns the wire format.
    #[inline]
    pub fn to_bytes(self) -> [u8; FRAME_HEADER_LEN] {
        debug_assert!(self.len <= MAX_FRAME_SIZE_MAX, "a frame's length has 24 bits");
        let [_, l0, l1, l2] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.get().to_be_bytes();
        [l0, l1, l2, u8::from(self.kind), self.flags.0, s0, s1, s2, s3]
    }

    /// Appends the frame header.
    #[inline]
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }
}

/// Appends a whole frame.
pub fn emit(kind: Kind, flags: Flags, stream: StreamId, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { len: payload.len() as u32, kind, flags, stream }.emit(out);
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_headers_round_trip() {
        for kind in 0..=255u8 {
            let header = FrameHeader {
                len: 0x0001_0203 + u32::from(kind),
                kind: Kind::from(kind),
                flags: Flags(kind ^ 0x5a),
                stream: StreamId::new(0x7fff_ff00 | u32::from(kind)),
            };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            assert_eq!(FrameHeader::parse(wire.first_chunk().unwrap()), header);
        }
    }

    /// RFC 9113 §4.1: the reserved bit is ignored.
    #[test]
    fn reserved_bit_is_dropped() {
        let header = FrameHeader::parse(&[0, 0, 4, 3, 0, 0x80, 0, 0, 7]);
        assert_eq!(header.stream, StreamId::new(7));
        assert_eq!(header.kind, Kind::RstStream);
    }
}
