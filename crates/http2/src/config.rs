//! Connection settings.

use std::time::Duration;

use crate::flow::{WINDOW_DEFAULT, WINDOW_MAX};
use crate::frame;
use crate::limits::Limits;
use crate::ping_policy::PingPolicy;
use crate::setters::setters;

/// The settings of one connection. Sizes are in bytes.
///
/// ```
/// let config = thalweg_http2::Config::default().max_concurrent_streams(1000).max_frame_size(16_384);
/// assert_eq!(config.max_concurrent_streams, 1000);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Receive window of a stream, advertised as SETTINGS_INITIAL_WINDOW_SIZE; 1 MiB by default, at most 2^31 - 1.
    pub stream_window: u32,
    /// Receive window of the connection; 4 MiB by default, from 65,535 (RFC 9113 §6.9.2: no connection starts lower) to
    /// 2^31 - 1.
    pub connection_window: u32,
    /// Budget in bytes for received data that the driver has not released, beyond what it
    /// [requires](crate::Connection::require_bytes) of one stream; 16 MiB by default. Above half of it, new streams
    /// start with narrow windows that together fit the budget (at most 64 KiB). Above it, only one stream at a time
    /// gets the window that the driver requires. At twice the sum of the budget and the connection's window, that
    /// window stays closed until data is released.
    pub buffer_budget: usize,
    /// Largest frame payload that the peer may send; 128 KiB by default, 16,384 to 16,777,215. Frames other than DATA
    /// may have to be buffered until they are complete.
    pub max_frame_size: u32,
    /// Size of the HPACK table that the peer's encoder may use; 4,096 by default.
    pub header_table_size: u32,
    /// Largest header list that is accepted; 16 KiB by default. It counts as RFC 9113 §10.5.1 does: name, value and 32
    /// for each field.
    pub max_header_list_size: u32,
    /// How many streams the peer may have open at a time; 256 by default. Servers advertise it, and clients wait before
    /// they open more. Further streams are refused by the protocol.
    pub max_concurrent_streams: u32,
    /// How many streams a client opens at a time if the peer permits more; unlimited by default.
    pub max_opened_streams: u32,
    /// How much is framed ahead of the socket for each [`Connection::take_output`](crate::Connection::take_output); 512
    /// KiB by default.
    pub output_target: usize,
    /// A stream becomes writable when its send queue falls below this size, having been above; 128 KiB by default.
    pub send_queue_low_water: usize,
    /// Time for the peer to acknowledge SETTINGS; 10 s by default. On expiry the connection ends with SETTINGS_TIMEOUT.
    pub settings_timeout: Duration,
    /// Time for which the second GOAWAY of a drain waits for the acknowledgement of the PING; 5 s by default.
    pub drain_timeout: Duration,
    /// How often a server's client may send PINGs: beyond it the connection ends with ENHANCE_YOUR_CALM and
    /// `too_many_pings`. `None`, the default: bounded by [`limits`](field@Self::limits) alone.
    pub ping_policy: Option<PingPolicy>,
    /// Bounds against abusive peers.
    pub limits: Limits,
}

setters!(Config {
    stream_window: u32,
    connection_window: u32,
    buffer_budget: usize,
    max_frame_size: u32,
    header_table_size: u32,
    max_header_list_size: u32,
    max_concurrent_streams: u32,
    max_opened_streams: u32,
    output_target: usize,
    send_queue_low_water: usize,
    settings_timeout: Duration,
    drain_timeout: Duration,
    ping_policy: Option<PingPolicy>,
    limits: Limits,
});

impl Config {
    /// Returns a copy clamped to the bounds of RFC 9113 §6.5.2 and §6.9, or `None` if it is within them.
    pub(crate) fn clamped(&self) -> Option<Config> {
        let stream_window = self.stream_window.min(WINDOW_MAX);
        let connection_window = self.connection_window.clamp(WINDOW_DEFAULT, WINDOW_MAX);
        let max_frame_size = self.max_frame_size.clamp(frame::MAX_FRAME_SIZE_MIN, frame::MAX_FRAME_SIZE_MAX);
        let is_valid = stream_window == self.stream_window
            && connection_window == self.connection_window
            && max_frame_size == self.max_frame_size;
        (!is_valid).then(|| Config { stream_window, connection_window, max_frame_size, ..self.clone() })
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            stream_window: 1 << 20,
            connection_window: 4 << 20,
            buffer_budget: 16 << 20,
            max_frame_size: 128 << 10,
            header_table_size: 4096,
            max_header_list_size: 16 << 10,
            max_concurrent_streams: 256,
            max_opened_streams: u32::MAX,
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
