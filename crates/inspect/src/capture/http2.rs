//! Decodes an HTTP/2 connection and its calls from both directions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use thalweg_http2::FieldList;
use thalweg_http2::frame::{Flags, FrameHeader, GoAway, Kind, Priority, unpad};
use thalweg_http2::hpack::{DecodeOutcome, Decoder};

use crate::capture::call::{self, Call, CallDirection, CallEnd, Endpoint, Fields, field};
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
pub(crate) struct Http2Connection {
    client: SocketAddr,
    server: SocketAddr,
    directions: [Direction; 2],
    streams: BTreeMap<u32, OpenStream>,
    /// The highest stream ID opened so far.
    highest_stream: u32,
    /// Text of the server's GOAWAY.
    goaway_note: Option<String>,
    last_at: Duration,
}

/// One direction.
#[derive(Debug)]
struct Direction {
    frames: Frames,
    decoder: Decoder,
    /// Header block to be continued: stream, END_STREAM and bytes so far.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Why decoding stopped.
    stopped: Option<String>,
}

/// An open stream.
#[derive(Debug)]
enum OpenStream {
    Call(Box<OpenCall>),
    /// A non-gRPC request, or one beyond the limit.
    Other,
}

#[derive(Debug)]
struct OpenCall {
    call: Call,
    messages: [Messages; 2],
    /// Whether the client sent END_STREAM.
    request_has_ended: bool,
}

impl Http2Connection {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let direction = || Direction {
            frames: Frames::default(),
            decoder: Decoder::new(TABLE_SIZE_MAX),
            block: None,
            stopped: None,
        };
        Self {
            client,
            server,
            directions: [direction(), direction()],
            streams: BTreeMap::new(),
            highest_stream: 0,
            goaway_note: None,
            last_at: Duration::ZERO,
        }
    }

    /// Processes bytes from `from`, without the client's preface.
    pub(crate) fn push(&mut self, from: Endpoint, at: Duration, bytes: &[u8], shared: &mut Shared<'_>) {
        self.last_at = self.last_at.max(at);
        let index = from as usize;
        if self.directions[index].stopped.is_some() {
            return;
        }
        // Taken out of `self`, because handling frames borrows the rest.
        let mut frames = std::mem::take(&mut self.directions[index].frames);
        let mut input = bytes;
        loop {
            let part = match frames.next(&mut input, shared.limits.frame_len_max) {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(why) => {
                    self.stop_decoding(from, why);
                    break;
                }
            };
            let followed = match part {
                Part::Data { stream, bytes, ends_stream } => {
                    self.data(from, at, stream, bytes, shared);
                    if ends_stream {
                        self.end_stream(from, at, stream, shared);
                    }
                    Ok(())
                }
                Part::Frame(head, payload) => self.frame(from, at, head, payload, shared),
            };
            if let Err(why) = followed {
                self.stop_decoding(from, why);
                break;
            }
        }
        self.directions[index].frames = frames;
    }

    /// Reports lost bytes of `from`. Later bytes cannot be decoded.
    pub(crate) fn gap(&mut self, from: Endpoint, len: u64) {
        self.stop_decoding(from, &format!("{len} bytes are not in the capture"));
    }

    /// Ends all calls.
    pub(crate) fn end(&mut self, end: CallEnd, shared: &mut Shared<'_>) {
        while let Some((&stream, _)) = self.streams.first_key_value() {
            self.finish(stream, end, self.last_at, shared);
        }
    }

    /// Stops decoding of `from`.
    pub(crate) fn stop_decoding(&mut self, from: Endpoint, why: &str) {
        let whose = match from {
            Endpoint::Client => "client",
            Endpoint::Server => "server",
        };
        let why = format!("data of the {whose} was not decoded further: {why}");
        let direction = &mut self.directions[from as usize];
        if direction.stopped.is_some() {
            return;
        }
        direction.stopped = Some(why.clone());
        direction.block = None;
        direction.frames = Frames::default();
        for stream in self.streams.values_mut() {
            if let OpenStream::Call(open_call) = stream {
                open_call.note(&why);
            }
        }
    }

    fn frame(
        &mut self,
        from: Endpoint,
        at: Duration,
        head: FrameHeader,
        payload: &[u8],
        shared: &mut Shared<'_>,
    ) -> Result<(), &'static str> {
        const BROKEN: &str = "malformed frame";
        let stream = head.stream.get();
        let ends_stream = head.flags.contains(Flags::END_STREAM);
        let direction = &mut self.directions[from as usize];
        if direction.block.is_some() && head.kind != Kind::Continuation {
            return Err("unterminated header block");
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
                let Some((stream, ends_stream, mut block)) = direction.block.take() else {
                    return Err("CONTINUATION without a header block");
                };
                block.extend_from_slice(payload);
                if block.len() > shared.limits.frame_len_max {
                    return Err("header block too long");
                }
                (block, ends_stream, stream)
            }
            Kind::RstStream => {
                let code = payload.first_chunk().map(|code| u32::from_be_bytes(*code)).ok_or(BROKEN)?;
                self.finish(stream, CallEnd::Reset(from, code), at, shared);
                return Ok(());
            }
            Kind::GoAway => {
                if let (Endpoint::Server, Some((goaway, debug))) = (from, GoAway::parse(payload)) {
                    let debug = String::from_utf8_lossy(&debug[..debug.len().min(200)]).into_owned();
                    let space = if debug.is_empty() { "" } else { " " };
                    self.goaway_note = Some(format!(
                        "the server sent GOAWAY {:?}{space}{debug}: last stream {}",
                        goaway.code,
                        goaway.last_stream.get()
                    ));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if !head.flags.contains(Flags::END_HEADERS) {
            direction.block = Some((stream, ends_stream, block));
            return Ok(());
        }
        let mut fields = FieldList::new();
        let outcome = direction
            .decoder
            .decode(&block, shared.limits.fields_len_max, &mut fields)
            .map_err(|_| "header block is malformed, or refers to data that is not in the capture")?;
        if stream != 0 {
            self.fields(from, at, stream, &fields, shared);
            if outcome == DecodeOutcome::TooLarge
                && let Some(OpenStream::Call(open_call)) = self.streams.get_mut(&stream)
            {
                open_call.note("headers are too long and were truncated");
            }
            if ends_stream {
                self.end_stream(from, at, stream, shared);
            }
        }
        Ok(())
    }

    /// Handles headers or trailers.
    fn fields(
        &mut self,
        from: Endpoint,
        at: Duration,
        stream: u32,
        list: &FieldList,
        shared: &mut Shared<'_>,
    ) {
        let fields = call::fields(list);
        if !self.streams.contains_key(&stream) {
            self.open_stream(at, stream, &fields, shared);
        }
        let Some(OpenStream::Call(open_call)) = self.streams.get_mut(&stream) else { return };
        let call = &mut open_call.call;
        let side = match from {
            Endpoint::Client => &mut call.request,
            Endpoint::Server => &mut call.response,
        };
        side.started_at.get_or_insert(at);
        let status = field(&fields, ":status");
        match from {
            // gRPC clients have no trailers.
            Endpoint::Client if side.headers.is_some() => {}
            Endpoint::Client => side.headers = Some(fields),
            // Informational response (RFC 9110 §15.2).
            Endpoint::Server if status.is_some_and(|status| status.starts_with(b"1")) => {}
            Endpoint::Server if status.is_some() && field(&fields, "grpc-status").is_none() => {
                side.headers = Some(fields);
            }
            Endpoint::Server => call.trailers = Some(fields),
        }
    }

    /// Starts an unknown stream.
    fn open_stream(&mut self, at: Duration, stream: u32, fields: &Fields, shared: &mut Shared<'_>) {
        // Streams up to `highest_stream` have ended or were beyond the limits. A higher one may start with the server's
        // headers if the client's are missing.
        if stream <= self.highest_stream {
            return;
        }
        self.highest_stream = stream;
        let content_type = field(fields, "content-type").unwrap_or_default();
        let is_grpc = content_type.strip_prefix(b"application/grpc");
        if !is_grpc.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';'))) {
            shared.summary.other_requests += 1;
            self.insert(stream, OpenStream::Other, shared.limits);
            return;
        }
        if self.streams.len() >= shared.limits.calls_max {
            shared.summary.calls_over_limit += 1;
            return;
        }
        let mut open_call = OpenCall {
            call: Call {
                client: self.client,
                server: self.server,
                stream,
                request: CallDirection::default(),
                response: CallDirection::default(),
                trailers: None,
                end: CallEnd::Unknown,
                ended_at: at,
                notes: Vec::new(),
            },
            messages: <[Messages; 2]>::default(),
            request_has_ended: false,
        };
        for direction in &self.directions {
            if let Some(why) = &direction.stopped {
                open_call.note(why);
            }
        }
        self.insert(stream, OpenStream::Call(Box::new(open_call)), shared.limits);
    }

    fn insert(&mut self, stream: u32, state: OpenStream, limits: &Limits) {
        if self.streams.len() < limits.calls_max {
            self.streams.insert(stream, state);
        }
    }

    fn data(&mut self, from: Endpoint, at: Duration, stream: u32, bytes: &[u8], shared: &mut Shared<'_>) {
        let Some(OpenStream::Call(open_call)) = self.streams.get_mut(&stream) else { return };
        let OpenCall { call, messages, .. } = &mut **open_call;
        let side = match from {
            Endpoint::Client => &mut call.request,
            Endpoint::Server => &mut call.response,
        };
        side.started_at.get_or_insert(at);
        call.ended_at = at;
        let messages_max = shared.limits.messages_max;
        messages[from as usize].push(at, bytes, side, messages_max, shared.budget);
    }

    /// Handles END_STREAM. The server's ends the call.
    fn end_stream(&mut self, from: Endpoint, at: Duration, stream: u32, shared: &mut Shared<'_>) {
        match (from, self.streams.get_mut(&stream)) {
            (Endpoint::Server, _) => self.finish(stream, CallEnd::Trailers, at, shared),
            (Endpoint::Client, Some(OpenStream::Call(open_call))) => open_call.request_has_ended = true,
            (Endpoint::Client, _) => {}
        }
    }

    fn finish(&mut self, stream: u32, end: CallEnd, at: Duration, shared: &mut Shared<'_>) {
        let Some(OpenStream::Call(open_call)) = self.streams.remove(&stream) else { return };
        let OpenCall { mut call, messages, request_has_ended } = *open_call;
        call.ended_at = at.max(call.ended_at);
        call.end = end;
        if matches!(end, CallEnd::Disconnected | CallEnd::Reset(Endpoint::Server, _))
            && let Some(note) = &self.goaway_note
        {
            call.notes.push(note.clone());
        }
        if call.request.headers.is_none() {
            call.notes.push("the request headers are not in the capture".to_owned());
        } else if end == CallEnd::Trailers && !request_has_ended {
            call.notes.push("in the capture, the response ended before the request".to_owned());
        }
        for (messages, whose) in messages.into_iter().zip(["request", "response"]) {
            if messages.has_incomplete() && end == CallEnd::Trailers {
                call.notes.push(format!("the last message of the {whose} is incomplete"));
            }
            messages.release(shared.budget);
        }
        for side in [&call.request, &call.response] {
            *shared.budget += side.messages.iter().map(|message| message.bytes.len()).sum::<usize>();
        }
        shared.summary.calls += 1;
        shared.calls.push(call);
    }
}

impl OpenCall {
    fn note(&mut self, note: &str) {
        let notes = &mut self.call.notes;
        if notes.len() < NOTES_MAX {
            notes.push(note.to_owned());
        }
    }
}
