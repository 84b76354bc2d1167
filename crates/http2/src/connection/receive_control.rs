//! Frames without message content: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE (RFC 9113 §6.3 to §6.9).

use std::time::Instant;

use super::{Connection, Role};
use crate::error::{ConnectionError, ErrorCode, Fault, Initiator, StreamError};
use crate::event::{Event, ResetCause, ResetReason};
use crate::flow::WINDOW_MAX;
use crate::frame::{
    self, Flags, FrameHeader, GoAway, MAX_FRAME_SIZE_MAX, MAX_FRAME_SIZE_MIN, Priority, Setting,
};
use crate::handshake::Acknowledgement;
use crate::stream::{LocalState, StreamId};
use crate::stream_table::Absent;
use crate::violation::Violation;

impl Connection {
    /// Checks priorities for errors and otherwise ignores them (RFC 9113 §5.3.2).
    pub(super) fn receive_priority<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if header.stream == StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::PriorityOnConnection).into());
        }
        self.budget.control_frame(Violation::PriorityExceeded, now)?;
        let Ok(payload) = payload.try_into() else {
            return Err(StreamError::new(ErrorCode::FrameSizeError, Violation::PriorityLength).into());
        };
        if Priority::parse(payload).dependency == header.stream {
            return Err(StreamError::protocol(Violation::SelfDependency).into());
        }
        Ok(None)
    }

    pub(super) fn receive_rst_stream<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        let Ok(code) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(ConnectionError::wrong_size(Violation::RstStreamLength).into());
        };
        let Some((key, stream)) = self.streams.find_mut(header.stream) else {
            return match self.streams.absent(header.stream) {
                Absent::Idle => Err(ConnectionError::protocol(Violation::RstStreamOnIdleStream).into()),
                // It may have crossed our END_STREAM or RST_STREAM.
                _ => Ok(self.budget.control_frame(Violation::RstStreamExceeded, now).map(|()| None)?),
            };
        };
        if self.role == Role::Server
            && stream.state.local == LocalState::AwaitingHeaders
            && stream.opened_in == self.receiving.batch
        {
            self.budget.unserved_reset(now)?;
        }
        let code = ErrorCode::from(code);
        let tag = self.remove(key, Absent::ResetByPeer);
        let cause = ResetCause {
            initiator: Initiator::Peer,
            code,
            unprocessed: code == ErrorCode::RefusedStream,
            reason: ResetReason::PeerReset,
        };
        Ok(Some(Event::Reset { stream: header.stream, tag, cause }))
    }

    pub(super) fn receive_settings<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if header.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::SettingsOnStream).into());
        }
        if header.flags.contains(Flags::ACK) {
            return self.receive_settings_ack(payload, now);
        }
        let (entries, []) = payload.as_chunks() else {
            return Err(ConnectionError::wrong_size(Violation::SettingsLength).into());
        };
        if entries.len() > self.config.limits.settings_entries_max {
            return Err(ConnectionError::calm(Violation::SettingsEntriesExceeded).into());
        }
        let first = !self.handshake.settings_received;
        let streams_before = self.sending.peer.max_concurrent_streams;
        if first {
            self.handshake.settings_received = true;
            self.sending.peer.max_concurrent_streams = u32::MAX;
        } else {
            self.budget.control_frame(Violation::SettingsExceeded, now)?;
        }
        let mut moves_windows = false;
        for &entry in entries {
            let setting = Setting::parse(entry);
            // Moving the windows of all streams is the most expensive operation per byte, and no peer needs it twice in
            // a frame.
            if matches!(setting, Setting::InitialWindowSize(_)) && std::mem::replace(&mut moves_windows, true)
            {
                self.budget.glitch(Violation::SettingsExceeded, now)?;
            }
            self.apply_setting(setting)?;
        }
        self.budget.count_reply()?;
        frame::settings_ack(self.sending.output.buffer());
        if self.role == Role::Client && (first || self.sending.peer.max_concurrent_streams != streams_before)
        {
            self.stream_end_awaited = self.shutdown.is_draining();
            return Ok(Some(Event::StreamsFree));
        }
        Ok(None)
    }

    /// RFC 9113 §6.5.2
    fn apply_setting(&mut self, setting: Setting) -> Result<(), ConnectionError> {
        match setting {
            Setting::HeaderTableSize(bytes) => self.sending.encoder.set_max_table_size(bytes as usize),
            Setting::EnablePush(push) => {
                let push_max = u32::from(self.role == Role::Server);
                if push > push_max {
                    return Err(ConnectionError::protocol(Violation::EnablePushInvalid));
                }
            }
            Setting::MaxConcurrentStreams(streams) => self.sending.peer.max_concurrent_streams = streams,
            Setting::InitialWindowSize(bytes) => return self.apply_initial_window(bytes),
            Setting::MaxFrameSize(bytes) => {
                if !(MAX_FRAME_SIZE_MIN..=MAX_FRAME_SIZE_MAX).contains(&bytes) {
                    return Err(ConnectionError::protocol(Violation::MaxFrameSizeInvalid));
                }
                self.sending.peer.max_frame_size = bytes;
            }
            Setting::MaxHeaderListSize(bytes) => self.sending.peer.max_header_list_size = bytes,
            Setting::Unknown(..) => {}
        }
        Ok(())
    }

    /// RFC 9113 §6.9.2
    fn apply_initial_window(&mut self, bytes: u32) -> Result<(), ConnectionError> {
        if bytes > WINDOW_MAX {
            return Err(ConnectionError::local(
                ErrorCode::FlowControlError,
                Violation::InitialWindowTooLarge,
            ));
        }
        let difference = i64::from(bytes) - i64::from(self.sending.peer.initial_window);
        self.sending.peer.initial_window = bytes;
        for (key, stream) in self.streams.iter_mut() {
            if stream.send_window.shift(difference).is_err() {
                return Err(ConnectionError::local(
                    ErrorCode::FlowControlError,
                    Violation::InitialWindowOverflow,
                ));
            }
            self.sending.schedule(key, stream);
        }
        Ok(())
    }

    /// Our SETTINGS take effect here (RFC 9113 §6.5.3).
    fn receive_settings_ack<'a>(&mut self, payload: &[u8], now: Instant) -> Result<Option<Event<'a>>, Fault> {
        if !payload.is_empty() {
            return Err(ConnectionError::wrong_size(Violation::SettingsAckNotEmpty).into());
        }
        if !self.handshake.settings_received {
            return Err(ConnectionError::protocol(Violation::FirstSettingsAcknowledge).into());
        }
        let before = std::mem::replace(&mut self.handshake.acknowledgement, Acknowledgement::Received);
        if before == Acknowledgement::Received {
            self.budget.control_frame(Violation::SettingsAcksExceeded, now)?;
            return Ok(None);
        }
        self.receiving.decoder.set_max_table_size(self.config.header_table_size as usize);
        if self.receiving.stream_window != self.receiving.stream_window_announced {
            self.receiving.stream_window = self.receiving.stream_window_announced;
            for (_, stream) in self.streams.iter_mut() {
                let announced = stream.receive_window.resize(self.receiving.stream_window);
                if let Some(increment) = announced.filter(|_| stream.state.can_receive()) {
                    frame::window_update(stream.id, increment, self.sending.output.buffer());
                }
            }
            self.widen_required_windows();
        }
        Ok(None)
    }

    pub(super) fn receive_ping<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if header.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::PingOnStream).into());
        }
        let Ok(payload) = payload.try_into() else {
            return Err(ConnectionError::wrong_size(Violation::PingLength).into());
        };
        // gRPC clients recognize this reason and send fewer PINGs (gRFC A8).
        self.budget.control_frame(Violation::PingsExceeded, now)?;
        if !header.flags.contains(Flags::ACK) {
            self.pings.receive(self.streams.len() > 0, now)?;
            self.budget.count_reply()?;
            frame::ping(true, payload, self.sending.output.buffer());
            return Ok(None);
        }
        if self.finish_drain_on_pong(payload) {
            return Ok(None);
        }
        Ok(Some(Event::Pong { payload }))
    }

    pub(super) fn receive_goaway<'a>(
        &mut self,
        header: FrameHeader,
        payload: &'a [u8],
        now: Instant,
    ) -> Result<Option<Event<'a>>, Fault> {
        if header.stream != StreamId::CONNECTION {
            return Err(ConnectionError::protocol(Violation::GoAwayOnStream).into());
        }
        let Some((goaway, debug)) = GoAway::parse(payload) else {
            return Err(ConnectionError::wrong_size(Violation::GoAwayLength).into());
        };
        if self.shutdown.peer_last_stream.is_some_and(|last| goaway.last_stream > last) {
            // RFC 9113 §6.8
            return Err(ConnectionError::protocol(Violation::GoAwayRaised).into());
        }
        self.budget.control_frame(Violation::GoAwaysExceeded, now)?;
        self.shutdown.peer_last_stream = Some(goaway.last_stream);
        if self.role == Role::Client {
            self.drop_streams_above(goaway);
        }
        Ok(Some(Event::GoAway { last_stream: goaway.last_stream, code: goaway.code, debug }))
    }

    /// Removes the streams that the peer will not serve, in the order in which they were opened.
    fn drop_streams_above(&mut self, goaway: GoAway) {
        let forsaken = self.streams.iter().filter(|(_, stream)| stream.id > goaway.last_stream);
        let mut forsaken: Vec<_> = forsaken.map(|(key, _)| key).collect();
        forsaken.sort_unstable_by_key(|key| key.stream());
        let cause = ResetCause {
            initiator: Initiator::Peer,
            code: goaway.code,
            unprocessed: true,
            reason: ResetReason::PeerWentAway,
        };
        for key in forsaken {
            let tag = self.remove(key, Absent::Forgotten);
            self.pending.push_back(Event::Reset { stream: key.stream(), tag, cause });
        }
    }

    pub(super) fn receive_window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Fault> {
        let Ok(increment) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(ConnectionError::wrong_size(Violation::WindowUpdateLength).into());
        };
        // The highest bit is reserved (RFC 9113 §6.9).
        let increment = increment & WINDOW_MAX;
        self.budget.control_frame(Violation::WindowUpdatesExceeded, now)?;
        if header.stream == StreamId::CONNECTION {
            return self.widen_connection(increment).map_err(Fault::from);
        }
        let Some((key, stream)) = self.streams.find_mut(header.stream) else {
            return match self.streams.absent(header.stream) {
                Absent::Idle => Err(ConnectionError::protocol(Violation::WindowUpdateOnIdleStream).into()),
                // It may have crossed our END_STREAM or RST_STREAM.
                _ => Ok(()),
            };
        };
        if increment == 0 {
            return Err(StreamError::protocol(Violation::StreamWindowUpdateZero).into());
        }
        if stream.send_window.widen(increment).is_err() {
            return Err(StreamError::new(ErrorCode::FlowControlError, Violation::StreamWindowOverflow).into());
        }
        self.sending.schedule(key, stream);
        Ok(())
    }

    fn widen_connection(&mut self, increment: u32) -> Result<(), ConnectionError> {
        if increment == 0 {
            return Err(ConnectionError::protocol(Violation::ConnectionWindowUpdateZero));
        }
        if self.sending.window.widen(increment).is_err() {
            return Err(ConnectionError::local(
                ErrorCode::FlowControlError,
                Violation::ConnectionWindowOverflow,
            ));
        }
        Ok(())
    }
}
