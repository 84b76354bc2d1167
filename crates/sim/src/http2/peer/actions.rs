//! A driver's actions: what it opens, sends, resets and closes.

use bytes::Bytes;
use thalweg_http2::{Block, ErrorCode, FieldList, Indexing, OpenError, StreamId, Tag};

use super::{CONTROL_LEN_MAX, EndFrame, Outbound, Peer, Phase, Scene};
use crate::http2::{Side, ledger, plan};
use crate::pattern;
use crate::random::Random;

/// Codes of resets by drivers. REFUSED_STREAM would mean that the request was not processed.
const RESET_CODES: [ErrorCode; 4] =
    [ErrorCode::Cancel, ErrorCode::NoError, ErrorCode::InternalError, ErrorCode::Unknown(0x77)];

impl Peer {
    /// Performs one action of the driver.
    pub(in crate::http2) fn act(&mut self, scene: &mut Scene<'_>) {
        self.next_act = None;
        if self.phase != Phase::Open {
            return;
        }
        if self.plan.acts > 0 {
            self.plan.acts -= 1;
            self.act_randomly(scene);
            if self.phase != Phase::Open {
                return;
            }
        }
        let stream = |random: &mut Random, count, mut streams: &mut dyn Iterator<Item = u32>| {
            (count > 0).then(|| (&mut streams).nth(random.below(count))).flatten()
        };
        match scene.random.below(4) {
            0 if self.may_open() => self.open(scene),
            1 if !self.unreleased.is_empty() => {
                let count = self.unreleased.len();
                let stream = stream(&mut scene.random, count, &mut self.unreleased.keys().copied());
                if let Some(stream) = stream {
                    self.release(stream, scene);
                }
            }
            _ => {
                let ready: Vec<_> = self.ready().collect();
                let stream = stream(&mut scene.random, ready.len(), &mut ready.into_iter());
                if let Some(stream) = stream {
                    self.send(stream, scene);
                }
            }
        }
        self.plan_act(scene);
    }

    fn act_randomly(&mut self, scene: &mut Scene<'_>) {
        let one_in = |random: &mut Random, n| n > 0 && random.one_in(n);
        if scene.random.one_in(20) {
            let payload = scene.ledger.ping(self.side);
            self.connection.ping(payload);
            self.output_slack += CONTROL_LEN_MAX;
        }
        if self.plan.resets && scene.random.one_in(4) {
            let open: Vec<_> = scene.ledger.unended(self.side).collect();
            if !open.is_empty() {
                self.reset(scene.random.pick(&open), scene);
            }
        }
        if one_in(&mut scene.random, self.plan.drain_one_in) {
            scene.note(self.side, "drain", 0, 0);
            scene.ledger.record_goaway(self.side, ErrorCode::NoError);
            self.connection.drain(scene.instant());
            self.output_slack += 2 * CONTROL_LEN_MAX;
        }
        if one_in(&mut scene.random, self.plan.close_one_in) {
            let code = scene.random.pick(&RESET_CODES);
            scene.note(self.side, "close", 0, u32::from(code) as usize);
            scene.ledger.record_goaway(self.side, code);
            self.connection.close(code, b"enough");
            self.output_slack += 2 * CONTROL_LEN_MAX;
            self.stop(Phase::Closing, scene);
        }
    }

    /// Opens one more stream.
    pub(in crate::http2) fn open(&mut self, scene: &mut Scene<'_>) {
        // Every other time it asks for a notification first, instead of being refused.
        if self.plan.streams_wanted.is_multiple_of(2) && self.connection.notify_free_stream() {
            self.waits_for_stream = true;
            return;
        }
        let outbound = self.outbound(scene);
        let mut headers = request_headers();
        plan::push_fields(&mut scene.random, &mut headers);
        let end = outbound.remaining == 0 && outbound.end_frame == EndFrame::LastData;
        let before_settings = !self.connection.settings_received();
        match self.connection.open(Tag(7), Block { fixed: None, extra: &headers }, end) {
            Ok(stream) => {
                let stream = stream.get();
                scene.note(self.side, "open", stream, outbound.remaining);
                scene.ledger.open(stream, before_settings);
                self.account_sent_headers(stream, &headers, end, scene);
                self.plan.streams_wanted = self.plan.streams_wanted.saturating_sub(1);
                if !end {
                    self.sending.insert(stream, Outbound { headers_sent: true, ..outbound });
                }
            }
            Err(OpenError::NoFreeStream) => self.waits_for_stream = true,
            Err(OpenError::GoingAway) => self.plan.streams_wanted = 0,
            Err(OpenError::HeadersTooLarge { .. }) => {
                self.plan.streams_wanted = self.plan.streams_wanted.saturating_sub(1);
            }
            Err(error) => panic!("the client cannot open a stream: {error}"),
        }
    }

    /// Opens a stream that the drivers use only as instructed.
    pub(in crate::http2) fn open_probe(&mut self, scene: &mut Scene<'_>) -> u32 {
        self.probing = true;
        let headers = request_headers();
        let stream = self
            .connection
            .open(Tag(7), Block { fixed: None, extra: &headers }, false)
            .expect("a free stream");
        scene.ledger.open(stream.get(), false);
        self.account_sent_headers(stream.get(), &headers, false, scene);
        stream.get()
    }

    pub(in crate::http2) fn expect_probe(&mut self) {
        self.probing = true;
    }

    pub(in crate::http2) fn respond_to_probe(&mut self, stream: u32, scene: &mut Scene<'_>) {
        self.send_header_block(stream, Some("200"), false, scene);
    }

    /// Sends the next part of a stream: headers, a part of the body, or the end.
    fn send(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(outbound) = self.sending.get_mut(&stream) else { return };
        if outbound.informational > 0 {
            outbound.informational -= 1;
            self.send_header_block(stream, Some("103"), false, scene);
        } else if !outbound.headers_sent {
            outbound.headers_sent = true;
            let end = outbound.remaining == 0 && outbound.end_frame == EndFrame::LastData;
            self.send_header_block(stream, Some("200"), end, scene);
        } else if outbound.remaining > 0 || outbound.end_frame != EndFrame::Trailers {
            self.send_body(stream, scene);
        } else {
            self.send_header_block(stream, None, true, scene);
        }
    }

    fn send_header_block(&mut self, stream: u32, status: Option<&str>, end: bool, scene: &mut Scene<'_>) {
        let mut headers = FieldList::new();
        if let Some(status) = status {
            headers.push(b":status", status.as_bytes(), Indexing::Insert);
        }
        if !self.probing {
            plan::push_fields(&mut scene.random, &mut headers);
        }
        let sent =
            self.connection.send_headers(StreamId::new(stream), Block { fixed: None, extra: &headers }, end);
        sent.unwrap_or_else(|error| panic!("no head can be sent on stream {stream}: {error}"));
        scene.note(self.side, "send head", stream, usize::from(end));
        self.account_sent_headers(stream, &headers, end, scene);
    }

    fn account_sent_headers(&mut self, stream: u32, headers: &FieldList, end: bool, scene: &mut Scene<'_>) {
        scene.ledger.send_headers(self.side, stream, headers, self.other_config.max_header_list_size, end);
        self.output_slack += headers.size() + CONTROL_LEN_MAX;
        if end {
            self.sending.remove(&stream);
        }
    }

    fn send_body(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(outbound) = self.sending.get_mut(&stream) else { return };
        let len = outbound.chunk.min(outbound.remaining);
        outbound.remaining -= len;
        let end = outbound.remaining == 0 && (len == 0 || outbound.end_frame == EndFrame::LastData);
        self.send_bytes(stream, len, end, scene);
        let queued = self.connection.queued(StreamId::new(stream));
        if end {
            self.sending.remove(&stream);
        } else if let Some(outbound) = self.sending.get_mut(&stream) {
            outbound.blocked = queued >= self.plan.config.send_queue_low_water;
        }
    }

    /// Sends the next `len` bytes of the side's body on a stream.
    pub(in crate::http2) fn send_bytes(&mut self, stream: u32, len: usize, end: bool, scene: &mut Scene<'_>) {
        let sent_bytes = scene.ledger.sent_bytes(self.side, stream);
        let bytes = pattern::slice_of(ledger::body_of(stream, self.side), sent_bytes, len);
        scene.note(self.side, if end { "send last" } else { "send" }, stream, len);
        let id = StreamId::new(stream);
        let in_place = scene.random.one_in(2)
            && self
                .connection
                .send_data_in_place(id, len, end, |out| out.extend_from_slice(&bytes))
                .expect("open");
        if !in_place {
            let sent = self.connection.send_data(id, [bytes], end);
            sent.unwrap_or_else(|error| panic!("nothing can be sent on stream {stream}: {error}"));
        }
        self.output_slack += CONTROL_LEN_MAX;
        scene.ledger.send(self.side, stream, len, end);
    }

    /// Ends a stream without further data.
    pub(in crate::http2) fn end(&mut self, stream: u32, scene: &mut Scene<'_>) {
        self.connection.send_data(StreamId::new(stream), [Bytes::new()], true).expect("open");
        scene.ledger.send(self.side, stream, 0, true);
    }

    fn release(&mut self, stream: u32, scene: &mut Scene<'_>) {
        let Some(unreleased) = self.unreleased.get_mut(&stream) else { return };
        let len = if scene.random.one_in(2) { *unreleased } else { scene.random.between(1, *unreleased) };
        *unreleased -= len;
        if *unreleased == 0 {
            self.unreleased.remove(&stream);
        }
        scene.note(self.side, "release", stream, len);
        self.connection.release(StreamId::new(stream), len);
        self.output_slack += CONTROL_LEN_MAX;
    }

    pub(super) fn reset(&mut self, stream: u32, scene: &mut Scene<'_>) {
        if scene.ledger.is_over(self.side, stream) {
            return;
        }
        let code = scene.random.pick(&RESET_CODES);
        scene.note(self.side, "reset it", stream, u32::from(code) as usize);
        scene.ledger.reset(self.side, stream, code);
        self.connection.reset(StreamId::new(stream), code);
        self.output_slack += CONTROL_LEN_MAX;
        self.forget(stream);
    }
}

fn request_headers() -> FieldList {
    let mut headers = FieldList::new();
    for (name, value) in [(":method", "POST"), (":scheme", "http"), (":path", "/a/b"), (":authority", "sim")]
    {
        headers.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    headers
}
