//! Frames that carry no message: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE (RFC 9113 §6.3
//! to §6.9).

use std::time::Instant;

use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Fault, Initiator, StreamError};
use crate::event::{Event, ResetCause};
use crate::flow::WINDOW_MAX;
use crate::frame::{
    self, Flags, FrameHead, GoAway, MAX_FRAME_SIZE_MAX, MAX_FRAME_SIZE_MIN, Priority, Setting,
};
use crate::stream::StreamId;
use crate::stream_table::Absent;

const fn wrong_size(reason: &'static str) -> ConnectionError {
    ConnectionError::local(ErrorCode::FrameSizeError, reason)
}

impl Connection {
    /// Priorities are read for their errors and ignored (RFC 9113 §5.3.2).
    pub(super) fn receive_priority<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol("PRIORITY on stream 0").into());
        }
        self.control_frame("too many PRIORITY frames", now)?;
        let Ok(payload) = payload.try_into() else {
            return Err(StreamError::new(ErrorCode::FrameSizeError, "PRIORITY is not 5 bytes long").into());
        };
        if Priority::parse(payload).dependency == head.stream {
            return Err(StreamError::protocol("a stream depends on itself").into());
        }
        Ok(None)
    }

    pub(super) fn receive_rst_stream<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let Ok(code) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(wrong_size("RST_STREAM is not 4 bytes long").into());
        };
        let Some(key) = self.streams.find(head.stream) else {
            return match self.streams.absent(head.stream) {
                Absent::Idle => Err(ConnectionError::protocol("RST_STREAM on an idle stream").into()),
                // It may have crossed our END_STREAM or RST_STREAM.
                _ => Ok(self.control_frame("too many RST_STREAMs on closed streams", now).map(|()| None)?),
            };
        };
        let stream = self.streams.get(key);
        if self.role == Role::Server
            && !stream.answered
            && stream.opened_in == self.batch
            && !self.resets.take(1, now)
        {
            let reason = "too many requests are reset before they can be served";
            return Err(ConnectionError::local(ErrorCode::EnhanceYourCalm, reason).into());
        }
        let code = ErrorCode::from(code);
        let tag = self.remove(key, Absent::ResetByPeer);
        let cause = ResetCause {
            initiator: Initiator::Peer,
            code,
            unprocessed: code == ErrorCode::RefusedStream,
            reason: "the peer reset the stream",
        };
        Ok(Some(Event::Reset { stream: head.stream, tag, cause }))
    }

    pub(super) fn receive_settings<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol("SETTINGS on a stream").into());
        }
        if head.flags.contains(Flags::ACK) {
            return self.receive_settings_ack(payload, now);
        }
        let (entries, []) = payload.as_chunks() else {
            return Err(wrong_size("SETTINGS is not a multiple of 6 bytes long").into());
        };
        if entries.len() > self.config.limits.settings_entries_max {
            return Err(
                ConnectionError::local(ErrorCode::EnhanceYourCalm, "SETTINGS with too many entries").into()
            );
        }
        let first = !self.settings_received;
        let slots_before = self.peer.max_concurrent_streams;
        if first {
            self.settings_received = true;
            self.peer.max_concurrent_streams = u32::MAX;
        } else {
            self.control_frame("too many SETTINGS frames", now)?;
        }
        for &entry in entries {
            self.apply_setting(Setting::parse(entry))?;
        }
        self.count_reply()?;
        frame::settings_ack(self.output.buffer());
        if self.role == Role::Client && (first || self.peer.max_concurrent_streams != slots_before) {
            self.slot_wanted = false;
            return Ok(Some(Event::SlotsChanged));
        }
        Ok(None)
    }

    /// RFC 9113 §6.5.2
    fn apply_setting(&mut self, setting: Setting) -> Result<(), ConnectionError> {
        match setting {
            Setting::HeaderTableSize(bytes) => self.encoder.set_max_table_size(bytes as usize),
            Setting::EnablePush(push) => {
                let push_max = u32::from(self.role == Role::Server);
                if push > push_max {
                    return Err(ConnectionError::protocol("ENABLE_PUSH is not what it may be"));
                }
            }
            Setting::MaxConcurrentStreams(streams) => self.peer.max_concurrent_streams = streams,
            Setting::InitialWindowSize(bytes) => return self.apply_initial_window(bytes),
            Setting::MaxFrameSize(bytes) => {
                if !(MAX_FRAME_SIZE_MIN..=MAX_FRAME_SIZE_MAX).contains(&bytes) {
                    return Err(ConnectionError::protocol("MAX_FRAME_SIZE is out of its range"));
                }
                self.peer.max_frame_size = bytes;
            }
            // What the peer is ready to accept is its advice (RFC 9113 §10.5.1); it refuses what is too large
            // itself.
            Setting::MaxHeaderListSize(_) | Setting::Unknown(..) => {}
        }
        Ok(())
    }

    /// RFC 9113 §6.9.2
    fn apply_initial_window(&mut self, bytes: u32) -> Result<(), ConnectionError> {
        if bytes > WINDOW_MAX {
            let reason = "INITIAL_WINDOW_SIZE is above 2^31 - 1";
            return Err(ConnectionError::local(ErrorCode::FlowControlError, reason));
        }
        let difference = i64::from(bytes) - i64::from(self.peer.initial_window);
        self.peer.initial_window = bytes;
        for (key, stream) in self.streams.iter_mut() {
            if stream.send_window.shift(difference).is_err() {
                let reason = "INITIAL_WINDOW_SIZE makes a window overflow";
                return Err(ConnectionError::local(ErrorCode::FlowControlError, reason));
            }
            self.queues.schedule(key, stream);
        }
        Ok(())
    }

    /// Our SETTINGS hold from here on (RFC 9113 §6.5.3).
    fn receive_settings_ack<'a>(&mut self, payload: &[u8], now: Instant) -> Result<Option<Event<'a>>, Fault> {
        if !payload.is_empty() {
            return Err(wrong_size("the acknowledgement of SETTINGS is not empty").into());
        }
        if !self.settings_received {
            return Err(ConnectionError::protocol("the first SETTINGS frame is an acknowledgement").into());
        }
        self.settings_deadline = None;
        if std::mem::replace(&mut self.settings_acknowledged, true) {
            self.control_frame("too many acknowledgements of SETTINGS", now)?;
            return Ok(None);
        }
        self.decoder.set_max_table_size(self.config.header_table_size as usize);
        if self.stream_window != self.config.stream_window {
            self.stream_window = self.config.stream_window;
            for (_, stream) in self.streams.iter_mut() {
                let announced = stream.receive_window.resize(self.stream_window);
                if let Some(increment) = announced.filter(|_| stream.state.can_receive()) {
                    frame::window_update(stream.id, increment, self.output.buffer());
                }
            }
        }
        Ok(None)
    }

    pub(super) fn receive_ping<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol("PING on a stream").into());
        }
        let Ok(payload) = payload.try_into() else {
            return Err(wrong_size("PING is not 8 bytes long").into());
        };
        // gRPC clients know this reason, and ping less (gRFC A8).
        self.control_frame("too_many_pings", now)?;
        if !head.flags.contains(Flags::ACK) {
            self.count_reply()?;
            frame::ping(true, payload, self.output.buffer());
            return Ok(None);
        }
        if self.finish_drain_on_pong(payload) {
            return Ok(None);
        }
        Ok(Some(Event::Pong { payload }))
    }

    pub(super) fn receive_goaway<'a>(
        &mut self,
        head: FrameHead,
        payload: &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if head.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol("GOAWAY on a stream").into());
        }
        let Some((goaway, debug)) = GoAway::parse(payload) else {
            return Err(wrong_size("GOAWAY is shorter than 8 bytes").into());
        };
        if self.peer_last_stream.is_some_and(|last| goaway.last_stream > last) {
            // RFC 9113 §6.8
            return Err(
                ConnectionError::protocol("a second GOAWAY lets more streams live than the first").into()
            );
        }
        self.control_frame("too many GOAWAYs", now)?;
        self.peer_last_stream = Some(goaway.last_stream);
        if self.role == Role::Client {
            self.forsake_streams_above(goaway);
        }
        Ok(Some(Event::GoAway { last_stream: goaway.last_stream, code: goaway.code, debug }))
    }

    /// Streams that the peer will not serve are gone, in the order in which they were opened.
    fn forsake_streams_above(&mut self, goaway: GoAway) {
        let forsaken = self.streams.iter().filter(|(_, stream)| stream.id > goaway.last_stream);
        let mut forsaken: Vec<_> = forsaken.map(|(key, stream)| (stream.id, key)).collect();
        forsaken.sort_unstable();
        let cause = ResetCause {
            initiator: Initiator::Peer,
            code: goaway.code,
            unprocessed: true,
            reason: "the peer went away before it processed the request",
        };
        for (stream, key) in forsaken {
            let tag = self.remove(key, Absent::Forgotten);
            self.pending.push_back(Event::Reset { stream, tag, cause });
        }
    }

    pub(super) fn receive_window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Fault> {
        let Ok(increment) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(wrong_size("WINDOW_UPDATE is not 4 bytes long").into());
        };
        // The highest bit is reserved (RFC 9113 §6.9).
        let increment = increment & WINDOW_MAX;
        self.control_frame("too many WINDOW_UPDATEs", now)?;
        if head.stream == StreamId::CONNECTION {
            return self.widen_connection(increment).map_err(Fault::from);
        }
        let Some(key) = self.streams.find(head.stream) else {
            return match self.streams.absent(head.stream) {
                Absent::Idle => Err(ConnectionError::protocol("WINDOW_UPDATE on an idle stream").into()),
                // It may have crossed our END_STREAM or RST_STREAM.
                _ => Ok(()),
            };
        };
        if increment == 0 {
            return Err(StreamError::protocol("WINDOW_UPDATE of 0").into());
        }
        let stream = self.streams.get_mut(key);
        if stream.send_window.widen(increment).is_err() {
            return Err(StreamError::new(ErrorCode::FlowControlError, "the stream's window overflows").into());
        }
        self.queues.schedule(key, stream);
        Ok(())
    }

    fn widen_connection(&mut self, increment: u32) -> Result<(), ConnectionError> {
        if increment == 0 {
            return Err(ConnectionError::protocol("WINDOW_UPDATE of 0 on the connection"));
        }
        if self.send_window.widen(increment).is_err() {
            let reason = "the connection's window overflows";
            return Err(ConnectionError::local(ErrorCode::FlowControlError, reason));
        }
        Ok(())
    }
}
