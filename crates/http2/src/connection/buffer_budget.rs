//! The buffer budget: received bytes that the driver has not released.
//!
//! A stream's window bounds the bytes buffered for it, but all streams together could buffer far too much.
//! [`Config::buffer_budget`](crate::Config::buffer_budget) bounds the total by means of windows. As more is buffered,
//! new streams start with narrow windows. Window beyond that, as the driver requires it, goes to one stream at a time,
//! oldest first. Finally the connection's window stays closed. A compliant peer is slowed down; any other exceeds a
//! window. The budget is checked when a window is announced, which is once in some hundred KiB.

use std::time::Instant;

use super::Connection;
use crate::frame::{self, Setting};
use crate::handshake::Acknowledgement;
use crate::stream::{Stream, StreamId};

/// Bounds in bytes of a stream's initial window while much is buffered. In between, all streams that may be open share
/// the budget.
const NARROW_WINDOW_MIN: u32 = 1 << 10;
const NARROW_WINDOW_MAX: u32 = 64 << 10;

impl Connection {
    /// Requests at least `len` more bytes on a stream, because the driver can release none of its buffered bytes before
    /// they arrive. An example is a message larger than the window. The window is widened at once. If more than
    /// [`Config::buffer_budget`](crate::Config::buffer_budget) is buffered, it is widened when older streams have what
    /// they require. Does nothing if the stream is gone.
    #[inline]
    pub fn require_bytes(&mut self, stream: StreamId, len: usize) {
        let Some((_, stream)) = self.streams.find_mut(stream) else { return };
        stream.required = u32::try_from(len).unwrap_or(u32::MAX);
        if !stream.receive_window.is_open_for(stream.required) {
            self.widen_required_windows();
        }
    }

    /// Withdraws the driver's [requirement](Self::require_bytes) once it is met, before any bytes are released, so that
    /// other streams get their turn.
    pub fn clear_required_bytes(&mut self, stream: StreamId) {
        let Some((_, stream)) = self.streams.find_mut(stream) else { return };
        stream.required = 0;
        if self.receiving.is_window_withheld {
            self.widen_required_windows();
        }
    }

    /// Returns the number of received bytes that the driver has not released.
    pub fn buffered_bytes(&self) -> usize {
        let streams = self.streams.iter().map(|(_, stream)| stream.receive_window.outstanding() as usize);
        streams.sum::<usize>() + self.receiving.gathered.len()
    }

    /// Returns whether the driver needs more of a stream than the peer may currently send.
    pub fn is_starved(&self, stream: StreamId) -> bool {
        let stream = self.streams.find_ref(stream);
        stream
            .is_some_and(|stream| stream.is_waiting() && !stream.receive_window.is_open_for(stream.required))
    }

    /// Returns whether an incomplete header block is being received.
    pub fn is_gathering_headers(&self) -> bool {
        self.receiving.gathering.is_some()
    }

    /// Returns the current value of [`Config::buffer_budget`](crate::Config::buffer_budget).
    pub fn buffer_budget(&self) -> usize {
        self.buffer_budget
    }

    /// Changes [`Config::buffer_budget`](crate::Config::buffer_budget).
    pub fn set_buffer_budget(&mut self, bytes: usize) {
        if self.buffer_budget != bytes {
            self.buffer_budget = bytes;
            self.widen_required_windows();
        }
    }

    /// Widens the windows of streams that the driver needs more of, oldest first and within the budget. One of them is
    /// widened in any case.
    #[cold]
    pub(super) fn widen_required_windows(&mut self) {
        let mut buffered: usize = 0;
        let mut waiting = Vec::new();
        for (key, stream) in self.streams.iter() {
            buffered += stream.receive_window.committed() as usize;
            if stream.is_waiting() && !stream.receive_window.is_open_for(stream.required) {
                waiting.push(key);
            }
        }
        waiting.sort_unstable_by_key(|key| key.stream());
        let first = self.first_served(waiting.first().map(|key| key.stream()));
        let budget = u32::try_from(self.buffer_budget).unwrap_or(u32::MAX);
        // Limited to the budget at a time, so that one message does not announce an unbounded window.
        let required_max = budget.max(self.receiving.stream_window).max(1);
        self.receiving.is_window_withheld = false;
        for key in waiting {
            let Some(stream) = self.streams.get_mut(key) else { continue };
            let missing = stream.receive_window.missing(stream.required.min(required_max));
            if first != Some(stream.id) && buffered + missing as usize > self.buffer_budget {
                self.receiving.is_window_withheld = true;
                continue;
            }
            buffered += missing as usize;
            stream.receive_window.widen_temporarily(missing);
            frame::window_update(stream.id, missing, self.sending.output.buffer());
        }
        if self.buffered_without_extra() >= self.connection_buffer_max() {
            self.receiving.is_window_withheld = true;
        } else if let Some(increment) = self.receiving.window.announce() {
            frame::window_update(StreamId::CONNECTION, increment, self.sending.output.buffer());
        }
    }

    /// Announces `increment` of the connection's window, unless too much is buffered.
    #[cold]
    pub(super) fn announce_connection_window(&mut self, increment: u32, now: Instant) {
        if self.buffered_without_extra() >= self.connection_buffer_max() {
            self.receiving.window.withhold(increment);
            self.receiving.is_window_withheld = true;
        } else {
            frame::window_update(StreamId::CONNECTION, increment, self.sending.output.buffer());
        }
        let buffered = self.buffered_bytes();
        let wide = self.config.stream_window;
        let narrow = wide.min(self.narrow_window());
        let fitting = match self.receiving.stream_window_announced {
            _ if buffered > self.buffer_budget / 2 => narrow,
            _ if buffered < self.buffer_budget / 8 => wide,
            announced => announced,
        };
        if fitting != self.receiving.stream_window_announced && self.handshake.is_acknowledged() {
            self.announce_stream_window(fitting, now);
        }
    }

    /// Sends SETTINGS that change the windows of all streams (RFC 9113 §6.9.2). They take effect when acknowledged.
    fn announce_stream_window(&mut self, size: u32, now: Instant) {
        self.receiving.stream_window_announced = size;
        frame::settings(&[Setting::InitialWindowSize(size)], self.sending.output.buffer());
        let deadline = now.checked_add(self.config.settings_timeout);
        self.handshake.acknowledgement = Acknowledgement::Awaited { deadline };
    }

    /// Returns the stream whose window is widened regardless of the budget. It stays the same until it has what is
    /// required. If it were always the oldest one, each older stream with a new requirement would add to the buffered
    /// bytes. A stream whose own window covers the requirement gives up its turn, because its message may not have been
    /// sent.
    fn first_served(&mut self, oldest: Option<StreamId>) -> Option<StreamId> {
        let is_served = |stream: &Stream| {
            let window = &stream.receive_window;
            stream.is_waiting() && (window.is_widened() || !window.is_open_for(stream.required))
        };
        let kept = self.receiving.first_served.filter(|id| self.streams.find_ref(*id).is_some_and(is_served));
        self.receiving.first_served = kept.or(oldest);
        self.receiving.first_served
    }

    /// Returns the buffered bytes without those that windows were widened for.
    fn buffered_without_extra(&self) -> usize {
        self.streams
            .iter()
            .map(|(_, stream)| stream.receive_window.outstanding_without_extra() as usize)
            .sum()
    }

    fn narrow_window(&self) -> u32 {
        let fair_share = self.buffer_budget / self.config.max_concurrent_streams.max(1) as usize;
        u32::try_from(fair_share).unwrap_or(u32::MAX).clamp(NARROW_WINDOW_MIN, NARROW_WINDOW_MAX)
    }

    /// Returns the bound above which the connection's window is withheld. A compliant peer stays below it. It narrows
    /// its windows when half the budget is buffered. Up to a connection window is in flight by then, and the open
    /// streams have narrow windows. Open streams count, because a client may have opened more than its own maximum.
    fn connection_buffer_max(&self) -> usize {
        let window = self.config.connection_window as usize;
        let narrow = self.streams.len().saturating_mul(self.narrow_window() as usize);
        self.buffer_budget.saturating_add(window).saturating_mul(2).saturating_add(narrow)
    }
}
