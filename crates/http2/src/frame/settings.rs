//! SETTINGS (RFC 9113 §6.5).

use super::{Flags, FrameHeader, Kind};
use crate::stream::StreamId;

/// One entry of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Maximum size of the HPACK table of the sender's decoder, in bytes.
    HeaderTableSize(u32),
    /// Whether the sender accepts pushes: 0 or 1.
    EnablePush(u32),
    /// Maximum number of concurrent streams that the sender allows.
    MaxConcurrentStreams(u32),
    /// Receive window of the sender's streams, in bytes.
    InitialWindowSize(u32),
    /// Maximum payload that the sender accepts, in bytes.
    MaxFrameSize(u32),
    /// Maximum header list that the sender accepts, in bytes; advisory.
    MaxHeaderListSize(u32),
    /// An unknown setting, to be ignored (RFC 9113 §6.5.2).
    Unknown(u16, u32),
}

impl Setting {
    /// Length of an entry in bytes.
    pub const LEN: usize = 6;

    /// Parses an entry. All values are valid.
    pub fn parse(entry: [u8; Setting::LEN]) -> Setting {
        let [i0, i1, v0, v1, v2, v3] = entry;
        let value = u32::from_be_bytes([v0, v1, v2, v3]);
        match u16::from_be_bytes([i0, i1]) {
            1 => Setting::HeaderTableSize(value),
            2 => Setting::EnablePush(value),
            3 => Setting::MaxConcurrentStreams(value),
            4 => Setting::InitialWindowSize(value),
            5 => Setting::MaxFrameSize(value),
            6 => Setting::MaxHeaderListSize(value),
            other => Setting::Unknown(other, value),
        }
    }

    fn emit(self, out: &mut Vec<u8>) {
        let (id, value): (u16, u32) = match self {
            Setting::HeaderTableSize(value) => (1, value),
            Setting::EnablePush(value) => (2, value),
            Setting::MaxConcurrentStreams(value) => (3, value),
            Setting::InitialWindowSize(value) => (4, value),
            Setting::MaxFrameSize(value) => (5, value),
            Setting::MaxHeaderListSize(value) => (6, value),
            Setting::Unknown(id, value) => (id, value),
        };
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a SETTINGS frame.
pub fn settings(entries: &[Setting], out: &mut Vec<u8>) {
    let len = (entries.len() * Setting::LEN) as u32;
    FrameHeader { len, kind: Kind::Settings, flags: Flags::NONE, stream: StreamId::CONNECTION }.emit(out);
    for entry in entries {
        entry.emit(out);
    }
}

/// Appends the acknowledgement of a SETTINGS frame.
pub fn settings_ack(out: &mut Vec<u8>) {
    FrameHeader { len: 0, kind: Kind::Settings, flags: Flags::ACK, stream: StreamId::CONNECTION }.emit(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_entries_round_trip() {
        let sent = [
            Setting::HeaderTableSize(1),
            Setting::EnablePush(0),
            Setting::MaxConcurrentStreams(u32::MAX),
            Setting::InitialWindowSize(65_535),
            Setting::MaxFrameSize(16_384),
            Setting::MaxHeaderListSize(0),
            Setting::Unknown(0xabcd, 9),
        ];
        let mut wire = Vec::new();
        settings(&sent, &mut wire);
        let (entries, rest) = wire[9..].as_chunks();
        assert!(rest.is_empty());
        assert_eq!(entries.iter().map(|&entry| Setting::parse(entry)).collect::<Vec<_>>(), sent);
    }
}
