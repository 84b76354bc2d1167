//! Decodes an HTTP/2 connection and its calls from both directions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use thalweg_http2::FieldList;
use thalweg_http2::frame::{Flags, FrameHead, GoAway, Kind, Priority, unpad};
use thalweg_http2::hpack::{DecodeOutcome, Decoder};

use crate::capture::call::{self, Call, End, Fields, Peer, Side, field};
use crate::capture::frames::{Frames, Part};
use crate::capture::limits::Limits;
use crate::capture::messages::Messages;
use crate::capture::summary::Summary;
use crate::capture::tls::KeyLog;

/// Maximum HPACK table size. Few peers request more than 4 KiB.
const TABLE_SIZE_MAX: usize = 64 << 10;
/// Maximum notes per call.
const NOTES_MAX: usize = 16;

/// State shared by all connections.
pub(crate) struct Shared<'s> {
    pub(crate) limits: &'s Limits,
    pub(crate) keys: &'s KeyLog,
    /// Remaining bytes for kept messages.
    pub(crate) budget: &'s mut usize,
    pub(crate) summary: &'s mut Summary,
    /// Ended calls.
    pub(crate) calls: &'s mut Vec<Call>,
}

/// An HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    client: SocketAddr,
    server: SocketAddr,
    ways: [Way; 2],
    open: BTreeMap<u32, Open>,
    /// The highest stream ID opened so far.
    highest: u32,
    /// Text of the server's GOAWAY.
    goaway: Option<String>,
    last_at: Duration,
}

/// One direction.
#[derive(Debug)]
struct Way {
    frames: Frames,
    decoder: Decoder,
    /// Header block to be continued: stream, END_STREAM and bytes so far.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Why decoding stopped.
    lost: Option<String>,
}

/// An open stream.
#[derive(Debug)]
enum Open {
    Call(Box<InProgress>),
    /// A non-gRPC request, or one beyond the limit.
    Other,
}

#[derive(Debug)]
struct InProgress {
    call: Call,
    messages: [Messages; 2],
    /// Whether the client sent END_STREAM.
    request_has_ended: bool,
}

impl Exchange {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let way = || Way {
            frames: Frames::default(),
            decoder: Decoder::new(TABLE_SIZE_MAX),
            block: None,
            lost: None,
        };
        Self {
            client,
            server,
            ways: [way(), way()],
            open: BTreeMap::new(),
            highest: 0,
            goaway: None,
            last_at: Duration::ZERO,
        }
    }

    /// Processes bytes from `from`, without the client's preface.
    pub(crate) fn take(&mut self, from: Peer, at: Duration, bytes: &[u8], shared: &mut Shared<'_>) {
        self.last_at = self.last_at.max(at);
        let index = from as usize;
        if self.ways[index].lost.is_some() {
            return;
        }
        // Taken out of `self`, because handling frames borrows the rest.
        let mut frames = std::mem::take(&mut self.ways[index].frames);
        let mut input = bytes;
        loop {
            let part = match frames.next(&mut input, shared.limits.frame_len_max) {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(why) => {
                    self.lose(from, why);
                    break;
                }
            };
            let followed = match part {
                Part::Data { stream, bytes, ends_stream } => {
                    self.data(from, at, stream, bytes, shared);
                    if ends_stream {
                        self.end_of(from, at, stream, shared);
                    }
                    Ok(())
                }
                Part::Frame(head, payload) => self.frame(from, at, head, payload, shared),
            };
            if let Err(why) = followed {
                self.lose(from, why);
                break;
            }
        }
        self.ways[index].frames = frames;
    }

    /// Reports lost bytes of `from`. Later bytes cannot be decoded.
    pub(crate) fn gap(&mut self, from: Peer, len: u64) {
        self.lose(from, &format!("{len} bytes are not in the capture"));
    }

    /// Ends all calls.
    pub(crate) fn end(&mut self, end: End, shared: &mut Shared<'_>) {
        while let Some((&stream, _)) = self.open.first_key_value() {
            self.finish(stream, end, self.last_at, shared);
        }
    }

    /// Stops decoding of `from`.
    pub(crate) fn lose(&mut self, from: Peer, why: &str) {
        let whose = match from {
            Peer::Client => "client",
            Peer::Server => "server",
        };
        let why = format!("what the {whose} sent cannot be followed from there on: {why}");
        let way = &mut self.ways[from as usize];
        if way.lost.is_some() {
            return;
        }
        way.lost = Some(why.clone());
        way.block = None;
        way.frames = Frames::default();
        for open in self.open.values_mut() {
            if let Open::Call(in_progress) = open {
                in_progress.note(&why);
            }
        }
    }

    fn frame(
        &mut self,
        from: Peer,
        at: Duration,
        head: FrameHead,
        payload: &[u8],
        shared: &mut Shared<'_>,
    ) -> Result<(), &'static str> {
        const BROKEN: &str = "a frame is broken";
        let stream = head.stream.get();
        let ends_stream = head.flags.contains(Flags::END_STREAM);
        let way = &mut self.ways[from as usize];
        if way.block.is_some() && head.kind != Kind::Continuation {
            return Err("a header block does not end");
        }
        let (block, ends_stream, stream) = match head.kind {
            Kind::Headers => {
                let mut block = unpad(head.flags, payload).map_err(|_| BROKEN)?;
                if head.flags.contains(Flags::PRIORITY) {
                    block = block.get(Priority::LEN..).ok_or(BROKEN)?;
                }
                (block.to_vec(), ends_stream, stream)
            }
            Kind::PushPromise => {
                // gRPC does not use PUSH_PROMISE, but it changes the HPACK table. Stream 0 has no call.
                let block = unpad(head.flags, payload).map_err(|_| BROKEN)?;
                (block.get(4..).ok_or(BROKEN)?.to_vec(), false, 0)
            }
            Kind::Continuation => {
                let Some((stream, ends_stream, mut block)) = way.block.take() else {
                    return Err("CONTINUATION without a header block");
                };
                block.extend_from_slice(payload);
                if block.len() > shared.limits.frame_len_max {
                    return Err("a header block is too long");
                }
                (block, ends_stream, stream)
            }
            Kind::RstStream => {
                let code = payload.first_chunk().map(|code| u32::from_be_bytes(*code)).ok_or(BROKEN)?;
                self.finish(stream, End::Reset(from, code), at, shared);
                return Ok(());
            }
            Kind::GoAway => {
                if let (Peer::Server, Some((goaway, debug))) = (from, GoAway::parse(payload)) {
                    let debug = String::from_utf8_lossy(&debug[..debug.len().min(200)]).into_owned();
                    let space = if debug.is_empty() { "" } else { " " };
                    self.goaway = Some(format!(
                        "the server said GOAWAY {:?}{space}{debug}: streams up to {}",
                        goaway.code,
                        goaway.last_stream.get()
                    ));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if !head.flags.contains(Flags::END_HEADERS) {
            way.block = Some((stream, ends_stream, block));
            return Ok(());
        }
        let mut fields = FieldList::new();
        let outcome = way
            .decoder
            .decode(&block, shared.limits.fields_len_max, &mut fields)
            .map_err(|_| "a header block is broken, or refers to what is not in the capture")?;
        if stream != 0 {
            self.fields(from, at, stream, &fields, shared);
            if outcome == DecodeOutcome::TooLarge
                && let Some(Open::Call(in_progress)) = self.open.get_mut(&stream)
            {
                in_progress.note("a head is too long, and was cut off");
            }
            if ends_stream {
                self.end_of(from, at, stream, shared);
            }
        }
        Ok(())
    }

    /// Handles headers or trailers.
    fn fields(&mut self, from: Peer, at: Duration, stream: u32, list: &FieldList, shared: &mut Shared<'_>) {
        let fields = call::fields(list);
        if !self.open.contains_key(&stream) {
            self.begin(at, stream, &fields, shared);
        }
        let Some(Open::Call(in_progress)) = self.open.get_mut(&stream) else { return };
        let call = &mut in_progress.call;
        let side = match from {
            Peer::Client => &mut call.request,
            Peer::Server => &mut call.response,
        };
        side.began_at.get_or_insert(at);
        let status = field(&fields, ":status");
        match from {
            // gRPC clients have no trailers.
            Peer::Client if side.head.is_some() => {}
            Peer::Client => side.head = Some(fields),
            // Informational response (RFC 9110 §15.2).
            Peer::Server if status.is_some_and(|status| status.starts_with(b"1")) => {}
            Peer::Server if status.is_some() && field(&fields, "grpc-status").is_none() => {
                side.head = Some(fields);
            }
            Peer::Server => call.trailers = Some(fields),
        }
    }

    /// Starts an unknown stream.
    fn begin(&mut self, at: Duration, stream: u32, fields: &Fields, shared: &mut Shared<'_>) {
        // Streams up to `highest` have ended or were beyond the limits. A higher one may start with the server's
        // headers if the client's are missing.
        if stream <= self.highest {
            return;
        }
        self.highest = stream;
        let content_type = field(fields, "content-type").unwrap_or_default();
        let is_grpc = content_type.strip_prefix(b"application/grpc");
        if !is_grpc.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';'))) {
            shared.summary.other_requests += 1;
            self.insert(stream, Open::Other, shared.limits);
            return;
        }
        if self.open.len() >= shared.limits.calls_max {
            shared.summary.calls_beyond += 1;
            return;
        }
        let mut in_progress = InProgress {
            call: Call {
                client: self.client,
                server: self.server,
                stream,
                request: Side::default(),
                response: Side::default(),
                trailers: None,
                end: End::Unknown,
                ended_at: at,
                notes: Vec::new(),
            },
            messages: <[Messages; 2]>::default(),
            request_has_ended: false,
        };
        for way in &self.ways {
            if let Some(why) = &way.lost {
                in_progress.note(why);
            }
        }
        self.insert(stream, Open::Call(Box::new(in_progress)), shared.limits);
    }

    fn insert(&mut self, stream: u32, open: Open, limits: &Limits) {
        if self.open.len() < limits.calls_max {
            self.open.insert(stream, open);
        }
    }

    fn data(&mut self, from: Peer, at: Duration, stream: u32, bytes: &[u8], shared: &mut Shared<'_>) {
        let Some(Open::Call(in_progress)) = self.open.get_mut(&stream) else { return };
        let InProgress { call, messages, .. } = &mut **in_progress;
        let side = match from {
            Peer::Client => &mut call.request,
            Peer::Server => &mut call.response,
        };
        side.began_at.get_or_insert(at);
        call.ended_at = at;
        let messages_max = shared.limits.messages_max;
        messages[from as usize].take(at, bytes, side, messages_max, shared.budget);
    }

    /// Handles END_STREAM. The server's ends the call.
    fn end_of(&mut self, from: Peer, at: Duration, stream: u32, shared: &mut Shared<'_>) {
        match (from, self.open.get_mut(&stream)) {
            (Peer::Server, _) => self.finish(stream, End::Trailers, at, shared),
            (Peer::Client, Some(Open::Call(in_progress))) => in_progress.request_has_ended = true,
            (Peer::Client, _) => {}
        }
    }

    fn finish(&mut self, stream: u32, end: End, at: Duration, shared: &mut Shared<'_>) {
        let Some(Open::Call(in_progress)) = self.open.remove(&stream) else { return };
        let InProgress { mut call, messages, request_has_ended } = *in_progress;
        call.ended_at = at.max(call.ended_at);
        call.end = end;
        if matches!(end, End::Disconnected | End::Reset(Peer::Server, _))
            && let Some(goaway) = &self.goaway
        {
            call.notes.push(goaway.clone());
        }
        if call.request.head.is_none() {
            call.notes.push("the request's head is not in the capture".to_owned());
        } else if end == End::Trailers && !request_has_ended {
            call.notes
                .push("the response ended before the request did, as far as the capture has it".to_owned());
        }
        for (messages, whose) in messages.into_iter().zip(["request", "response"]) {
            if messages.is_within_one() && end == End::Trailers {
                call.notes.push(format!("the last message of the {whose} does not end"));
            }
            messages.give_back(shared.budget);
        }
        for side in [&call.request, &call.response] {
            *shared.budget += side.messages.iter().map(|message| message.bytes.len()).sum::<usize>();
        }
        shared.summary.calls += 1;
        shared.calls.push(call);
    }
}

impl InProgress {
    fn note(&mut self, note: &str) {
        let notes = &mut self.call.notes;
        if notes.len() < NOTES_MAX {
            notes.push(note.to_owned());
        }
    }
}
