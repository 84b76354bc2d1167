//! What the peer has this end hold: bytes that have come and that their owner has not used up.
//!
//! A stream's window bounds what is held of it; all of them together hold much more than a connection should. So there
//! is a budget, [`Config::held_max`](crate::Config::held_max), which is kept by windows: as more is held, streams
//! begin with narrow ones, what an owner needs beyond them is announced to one stream after the other, the oldest
//! first, and in the end the connection's window stays closed. A peer that keeps the rules is slowed down; one that
//! does not breaks them. It is looked at when a window is announced, once in some hundred KiB.

use std::time::Instant;

use super::Connection;
use crate::frame::{self, Setting};
use crate::handshake::Acknowledgement;
use crate::stream::{Stream, StreamId};

/// The least and the largest window that streams begin with while much is held, in bytes: between them, all that may
/// be open share the budget.
const NARROW_WINDOW_MIN: u32 = 1 << 10;
const NARROW_WINDOW_MAX: u32 = 64 << 10;

impl Connection {
    /// Has the peer send at least `len` bytes more on a stream: its owner can use, and release, nothing of what it
    /// holds before they have come, as with a message that is larger than the window. The window is widened for them,
    /// at once or, while the connection holds more than [`Config::held_max`](crate::Config::held_max), when older
    /// streams have had what they need. Does nothing on streams that are gone.
    #[inline]
    pub fn need(&mut self, stream: StreamId, len: usize) {
        let Some((_, stream)) = self.streams.find_mut(stream) else { return };
        stream.needed = u32::try_from(len).unwrap_or(u32::MAX);
        if !stream.receive_window.is_open_for(stream.needed) {
            self.widen_for_owners();
        }
    }

    /// What an owner [needed](Self::need) has come: others may have their turn, before it has used anything up.
    pub fn need_is_met(&mut self, stream: StreamId) {
        let Some((_, stream)) = self.streams.find_mut(stream) else { return };
        stream.needed = 0;
        if self.receiving.is_short {
            self.widen_for_owners();
        }
    }

    /// How many bytes have come that their owners have not used up.
    pub fn held(&self) -> usize {
        let streams = self.streams.iter().map(|(_, stream)| stream.receive_window.outstanding() as usize);
        streams.sum::<usize>() + self.receiving.gathered.len()
    }

    /// Whether the owner of a stream needs more of it than the peer may send at the moment.
    pub fn is_starved(&self, stream: StreamId) -> bool {
        let stream = self.streams.find_ref(stream);
        stream.is_some_and(|stream| stream.is_waiting() && !stream.receive_window.is_open_for(stream.needed))
    }

    /// Whether a header block has begun that is not whole.
    pub fn is_gathering_headers(&self) -> bool {
        self.receiving.gathering.is_some()
    }

    /// [`Config::held_max`](crate::Config::held_max), as it is now.
    pub fn held_max(&self) -> usize {
        self.held_max
    }

    /// Changes [`Config::held_max`](crate::Config::held_max).
    pub fn set_held_max(&mut self, bytes: usize) {
        if self.held_max != bytes {
            self.held_max = bytes;
            self.widen_for_owners();
        }
    }

    /// Announces window to the streams whose owners need it, oldest first, as far as the budget goes; one of them gets
    /// it in any case.
    #[cold]
    pub(super) fn widen_for_owners(&mut self) {
        let mut held: usize = 0;
        let mut waiting = Vec::new();
        for (key, stream) in self.streams.iter() {
            held += stream.receive_window.committed() as usize;
            if stream.is_waiting() && !stream.receive_window.is_open_for(stream.needed) {
                waiting.push(key);
            }
        }
        waiting.sort_unstable_by_key(|key| key.stream());
        let first = self.first_served(waiting.first().map(|key| key.stream()));
        let budget = u32::try_from(self.held_max).unwrap_or(u32::MAX);
        // No more at a time than the budget has, so that one message does not announce a window without a bound.
        let lent_max = budget.max(self.receiving.stream_window).max(1);
        self.receiving.is_short = false;
        for key in waiting {
            let Some(stream) = self.streams.get_mut(key) else { continue };
            let missing = stream.receive_window.missing(stream.needed.min(lent_max));
            if first != Some(stream.id) && held + missing as usize > self.held_max {
                self.receiving.is_short = true;
                continue;
            }
            held += missing as usize;
            stream.receive_window.lend(missing);
            frame::window_update(stream.id, missing, self.sending.output.buffer());
        }
        if self.held_of_own_windows() >= self.connection_held_max() {
            self.receiving.is_short = true;
        } else if let Some(increment) = self.receiving.window.announce() {
            frame::window_update(StreamId::CONNECTION, increment, self.sending.output.buffer());
        }
    }

    /// Gives the connection's window back, `increment` of it, unless too much is held.
    #[cold]
    pub(super) fn announce_connection_window(&mut self, increment: u32, now: Instant) {
        if self.held_of_own_windows() >= self.connection_held_max() {
            self.receiving.window.withhold(increment);
            self.receiving.is_short = true;
        } else {
            frame::window_update(StreamId::CONNECTION, increment, self.sending.output.buffer());
        }
        let held = self.held();
        let wide = self.config.stream_window;
        let narrow = wide.min(self.narrow_window());
        let fitting = match self.receiving.stream_window_announced {
            _ if held > self.held_max / 2 => narrow,
            _ if held < self.held_max / 8 => wide,
            announced => announced,
        };
        if fitting != self.receiving.stream_window_announced && self.handshake.is_acknowledged() {
            self.announce_stream_window(fitting, now);
        }
    }

    /// SETTINGS that change the window of all streams (RFC 9113 §6.9.2). It holds once they are acknowledged.
    fn announce_stream_window(&mut self, size: u32, now: Instant) {
        self.receiving.stream_window_announced = size;
        frame::settings(&[Setting::InitialWindowSize(size)], self.sending.output.buffer());
        let deadline = now.checked_add(self.config.settings_timeout);
        self.handshake.acknowledgement = Acknowledgement::Awaited { deadline };
    }

    /// The stream that gets the window that its owner needs whatever the others hold. It stays the same until its owner
    /// has what it needs: were it always the oldest, each older one that comes to need something would add to what is
    /// held. A stream whose own window covers its need gives up the place, because its message may not be on its way.
    fn first_served(&mut self, oldest: Option<StreamId>) -> Option<StreamId> {
        let is_served = |stream: &Stream| {
            let window = &stream.receive_window;
            stream.is_waiting() && (window.is_lent() || !window.is_open_for(stream.needed))
        };
        let kept = self.receiving.first_served.filter(|id| self.streams.find_ref(*id).is_some_and(is_served));
        self.receiving.first_served = kept.or(oldest);
        self.receiving.first_served
    }

    /// What is held without what streams' windows were widened for.
    fn held_of_own_windows(&self) -> usize {
        self.streams.iter().map(|(_, stream)| stream.receive_window.outstanding_of_own() as usize).sum()
    }

    fn narrow_window(&self) -> u32 {
        let share = self.held_max / self.config.max_concurrent_streams.max(1) as usize;
        u32::try_from(share).unwrap_or(u32::MAX).clamp(NARROW_WINDOW_MIN, NARROW_WINDOW_MAX)
    }

    /// From here on the connection's window is withheld. A peer that narrows its streams' windows when it hears of it
    /// does not come so far: when half the budget is held, it has as much on its way as the connection's window, and
    /// then the streams that are open have narrow ones, of which a client may have opened more than it takes itself.
    fn connection_held_max(&self) -> usize {
        let window = self.config.connection_window as usize;
        let narrow = self.streams.len().saturating_mul(self.narrow_window() as usize);
        self.held_max.saturating_add(window).saturating_mul(2).saturating_add(narrow)
    }
}
