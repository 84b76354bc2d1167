//! The wire format of frames (RFC 9113 §4.1, §6): frame headers and structured payloads.
//!
//! Each payload has `parse` and `emit`. DATA and header blocks have no structure except padding ([`unpad`]).

mod control;
mod header;
pub(crate) mod padding;
mod settings;

pub use control::{GoAway, Priority, ping, rst_stream, window_update};
pub use header::{
    FRAME_HEADER_LEN, Flags, FrameHeader, Kind, MAX_FRAME_SIZE_MAX, MAX_FRAME_SIZE_MIN, PREFACE, emit,
};
pub use padding::unpad;
pub use settings::{Setting, settings, settings_ack};
