//! The events that a driver receives, and its responses to them.

use thalweg_http2::{ErrorCode, Event, StreamId};

use super::{CONTROL_LEN_MAX, Peer, Phase, Scene};
use crate::http2::{Side, ledger};

/// Maximum length of the connection's DATA frames, if the peer accepts that, in bytes.
const DATA_LEN_MAX: usize = 128 << 10;

impl Peer {
    /// Processes received bytes after those left from the last time.
    pub(in crate::http2) fn receive(&mut self, arrived: &[u8], scene: &mut Scene<'_>) {
        let arrived = self.receive_data_in_place(arrived, scene);
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(arrived);
        self.output_slack += 3 * arrived.len();
        let mut rest = &input[..];
        self.poll_events(&mut rest, scene);
        self.input = rest.to_vec();
        let kept_max = self.plan.config.max_frame_size as usize + thalweg_http2::frame::FRAME_HEADER_LEN;
        assert!(self.input.len() < kept_max, "{} bytes are kept", self.input.len());
        self.plan_act(scene);
    }

    /// Sometimes reads expected DATA itself. Returns the rest.
    fn receive_data_in_place<'a>(&mut self, arrived: &'a [u8], scene: &mut Scene<'_>) -> &'a [u8] {
        let expected = self.connection.expected_data().filter(|_| arrived.len().is_multiple_of(2));
        let Some(expected) = expected else { return arrived };
        assert!(self.input.is_empty(), "DATA is expected behind what is left");
        let (bytes, rest) = arrived.split_at(arrived.len().min(expected.len));
        self.output_slack += 3 * bytes.len();
        let end = self.connection.note_direct_data(bytes.len());
        let end_stream = matches!(end, Some(Event::Data { bytes: [], end_stream: true, .. }));
        assert!(end_stream || end.is_none(), "{end:?} of data that was placed");
        if end_stream || !bytes.is_empty() {
            self.on_event(
                Event::Data { stream: expected.stream, tag: expected.tag, bytes, start: 0, end_stream },
                scene,
            );
        }
        rest
    }

    fn poll_events(&mut self, input: &mut &[u8], scene: &mut Scene<'_>) {
        loop {
            let before = *input;
            match self.connection.poll_event(input, scene.instant()) {
                Ok(Some(event)) => {
                    if let Event::Data { bytes, start, .. } = event {
                        assert_eq!(
                            &before[start..start + bytes.len()],
                            bytes,
                            "DATA does not lie where it says"
                        );
                    }
                    self.on_event(event, scene);
                }
                Ok(None) => return,
                // The error that it was closed with.
                Err(_) if self.phase == Phase::Closing => {
                    *input = &[];
                    return;
                }
                Err(error) => panic!("{:?} accuses an honest peer: {error}", self.side),
            }
        }
    }

    /// Takes output if none is left.
    pub(in crate::http2) fn take_output(&mut self, scene: &mut Scene<'_>) {
        if !self.output.is_empty() || !self.connection.take_output(&mut self.output) {
            return;
        }
        let bound = self.plan.config.output_target + DATA_LEN_MAX + self.output_slack;
        assert!(self.output.len() <= bound, "{} bytes of output, {bound} expected", self.output.len());
        self.output_slack = 4 * CONTROL_LEN_MAX;
        // Queues may have become writable.
        self.poll_events(&mut &[][..], scene);
        self.plan_act(scene);
    }

    pub(in crate::http2) fn handle_timeout(&mut self, scene: &mut Scene<'_>) {
        if let Err(error) = self.connection.handle_timeout(scene.instant()) {
            let requested = error.code == ErrorCode::SettingsTimeout;
            assert!(requested, "{:?} accuses an honest peer: {error}", self.side);
            scene.note(self.side, "settings timeout", 0, 0);
            scene.ledger.record_goaway(self.side, error.code);
            self.stop(Phase::Closing, scene);
        }
    }

    /// The other side has closed the connection. If it closed normally, no stream was left open.
    pub(in crate::http2) fn end_input(&mut self, is_orderly: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "end of input", 0, usize::from(is_orderly));
        if is_orderly && self.phase == Phase::Open {
            let unended: Vec<_> = scene.ledger.unended(self.side).collect();
            assert!(unended.is_empty(), "the peer left well, but {unended:?} are open: {:#?}", scene.ledger);
        }
        self.stop(Phase::Over, scene);
    }

    /// The connection is drained, and all its streams have ended.
    pub(in crate::http2) fn finish_drained(&mut self, scene: &mut Scene<'_>) {
        let unended: Vec<_> = scene.ledger.unended(self.side).collect();
        assert!(
            unended.is_empty(),
            "the connection is drained, but {unended:?} are open: {:#?}",
            scene.ledger
        );
        self.stop(Phase::Over, scene);
    }

    fn on_event(&mut self, event: Event<'_>, scene: &mut Scene<'_>) {
        let side = self.side;
        match event {
            Event::Headers { stream, end_stream, .. } => self.receive_headers(stream, end_stream, scene),
            Event::CompleteMessage { stream, bytes, .. } => {
                self.receive_headers(stream, false, scene);
                self.receive_data(stream, bytes, side == Side::Server, scene);
                if side == Side::Client {
                    self.receive_trailers(stream, scene);
                }
            }
            Event::Informational { stream, .. } => {
                scene.note(side, "informational", stream.get(), 0);
                let hash = ledger::hash_fields(self.connection.fields().iter());
                scene.ledger.receive_headers(side, stream.get(), hash, false);
            }
            Event::Trailers { stream, .. } => self.receive_trailers(stream, scene),
            Event::Data { stream, bytes, end_stream, .. } => {
                self.receive_data(stream, bytes, end_stream, scene);
            }
            Event::Reset { stream, cause, .. } => {
                scene.note(side, "reset", stream.get(), u32::from(cause.code) as usize);
                scene.ledger.check_reset(side, stream.get(), cause);
                assert!(!self.connection.is_open(stream), "stream {stream} is open after its Reset");
                self.forget(stream.get());
            }
            Event::Writable { stream, .. } => {
                scene.note(side, "writable", stream.get(), 0);
                if let Some(outbound) = self.sending.get_mut(&stream.get()) {
                    outbound.blocked = false;
                }
            }
            Event::StreamsFree => self.waits_for_stream = false,
            Event::GoAway { code, debug, .. } => {
                scene.note(side, "goaway", 0, u32::from(code) as usize);
                scene.ledger.check_goaway(side, code, debug);
            }
            Event::Pong { payload } => scene.ledger.check_pong(side, payload),
            other => panic!("an unknown event: {other:?}"),
        }
        self.react(event, scene);
    }

    fn receive_headers(&mut self, stream: StreamId, end_stream: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "headers", stream.get(), usize::from(end_stream));
        let hash = ledger::hash_fields(self.connection.fields().iter());
        scene.ledger.receive_headers(self.side, stream.get(), hash, end_stream);
        if self.side == Side::Server && !self.probing {
            let outbound = self.outbound(scene);
            self.sending.insert(stream.get(), outbound);
        }
    }

    fn receive_data(&mut self, stream: StreamId, bytes: &[u8], end_stream: bool, scene: &mut Scene<'_>) {
        scene.note(self.side, "data", stream.get(), bytes.len());
        scene.ledger.receive(self.side, stream.get(), bytes, end_stream);
        self.account_received_data(stream, bytes.len(), end_stream);
    }

    fn receive_trailers(&mut self, stream: StreamId, scene: &mut Scene<'_>) {
        scene.note(self.side, "trailers", stream.get(), 0);
        let hash = ledger::hash_fields(self.connection.trailers().iter());
        scene.ledger.receive_headers(self.side, stream.get(), hash, true);
    }

    fn account_received_data(&mut self, stream: StreamId, len: usize, end_stream: bool) {
        if self.plan.releases_at_once {
            self.connection.release(stream, len);
        } else if end_stream {
            self.unreleased.remove(&stream.get());
        } else {
            *self.unreleased.entry(stream.get()).or_default() += len;
        }
    }

    /// Some drivers reset a stream on an event, even between two parts of a frame.
    fn react(&mut self, event: Event<'_>, scene: &mut Scene<'_>) {
        if let Event::Headers { stream, .. }
        | Event::CompleteMessage { stream, .. }
        | Event::Data { stream, .. } = event
            && self.plan.resets
            && !self.probing
            && scene.random.one_in(30)
        {
            self.reset(stream.get(), scene);
        }
    }
}
