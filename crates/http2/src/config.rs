//! What the owner of a connection can choose.

use std::time::Duration;

use crate::flow::{WINDOW_DEFAULT, WINDOW_MAX};
use crate::frame;
use crate::limits::Limits;
use crate::ping_policy::PingPolicy;
use crate::setters::setters;

/// The settings of one connection. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Config {
    /// The receive window of a stream, in bytes, advertised as SETTINGS_INITIAL_WINDOW_SIZE; at most
    /// 2^31 - 1.
    pub stream_window: u32,
    /// The receive window of the connection, in bytes; at least 65,535 (RFC 9113 §6.9.2 lets no one start
#[non_exhaustive]
    /// lower).
    pub connection_window: u32,
    /// How much the peer may have this end hold of what it sent and the owner has not used up, in bytes, beyond what
    /// the owner [needs](crate::Connection::need) of one stream. Above half of it streams begin with windows that all
    /// of them together can have (64 KiB at most); above it only one stream at a time gets what its owner
    /// needs; at twice as much and twice the connection's window, that window stays closed until something is used up.
    pub held_max: usize,
    /// The largest frame payload that the peer may send, in bytes: 16,384 to 16,777,215. Of frames other than DATA as
    /// much may have to be kept until they are whole.
    pub max_frame_size: u32,
    /// The size of the HPACK table that the peer's encoder may use, in bytes.
    pub header_table_size: u32,
    /// The largest header list that is accepted, in bytes, counted as RFC 9113 §10.5.1 does: name, value and
    /// 32 per field.
    pub max_header_list_size: u32,
    /// How many streams the peer may have open at a time; servers advertise it.
    pub max_concurrent_streams: u32,
    /// How much is framed ahead of the socket per
    /// [`Connection::take_output`](crate::Connection::take_output), in bytes.
    pub output_target: usize,
    /// A stream whose send queue falls below this many bytes, having been above, becomes writable.
    pub send_queue_low_water: usize,
    /// How long the peer may take to acknowledge SETTINGS before the connection ends with SETTINGS_TIMEOUT.
    pub settings_timeout: Duration,
    /// How long the second GOAWAY of a drain waits for the PING's acknowledgement.
    pub drain_timeout: Duration,
    /// How often a server's client may send PINGs: beyond it the connection ends with ENHANCE_YOUR_CALM and
    /// `too_many_pings`. Without one, PINGs are bounded by [`limits`](Self::limits) alone.
    pub ping_policy: Option<PingPolicy>,
    /// Bounds against abusive peers.
    pub limits: Limits,
}

impl Config {
    /// The same within the bounds of RFC 9113 §6.5.2 and §6.9; `None` where it is.
    pub(crate) fn fitted(&self) -> Option<Config> {
        let stream_window = self.stream_window.min(WINDOW_MAX);
        let connection_window = self.connection_window.clamp(WINDOW_DEFAULT, WINDOW_MAX);
        let max_frame_size = self.max_frame_size.clamp(frame::MAX_FRAME_SIZE_MIN, frame::MAX_FRAME_SIZE_MAX);
setters!(Config {
    stream_window: u32,
    connection_window: u32,
    held_max: usize,
    max_frame_size: u32,
    header_table_size: u32,
    max_header_list_size: u32,
    max_concurrent_streams: u32,
    output_target: usize,
    send_queue_low_water: usize,
    settings_timeout: Duration,
    drain_timeout: Duration,
    ping_policy: Option<PingPolicy>,
    limits: Limits,
});

        let is_fitting = stream_window == self.stream_window
            && connection_window == self.connection_window
            && max_frame_size == self.max_frame_size;
        (!is_fitting).then(|| Config { stream_window, connection_window, max_frame_size, ..self.clone() })
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            stream_window: 1 << 20,
            connection_window: 4 << 20,
            held_max: 16 << 20,
            max_frame_size: 128 << 10,
            header_table_size: 4096,
            max_header_list_size: 16 << 10,
            max_concurrent_streams: 256,
            // A client stream of 1.5 MB over TCP: 1,289 messages/s with 128 KiB, 2,836 with this, 2,206 with 1 MiB.
            output_target: 512 << 10,
            send_queue_low_water: 128 << 10,
            settings_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(5),
            ping_policy: None,
            limits: Limits::default(),
        }
    }
}
