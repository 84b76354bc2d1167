//! Construction of frames.

use thalweg_engine::http2::frame::{self, Flags, Kind, Setting};
use thalweg_engine::http2::hpack::Encoder;
use thalweg_engine::http2::{Block, ErrorCode, FieldList, Indexing, StreamId};

/// Frames to send.
pub(crate) struct Frames {
    pub(crate) out: Vec<u8>,
    /// Number of frames.
    pub(crate) count: u64,
    /// Whether to send them now, however few.
    pub(crate) is_urgent: bool,
    encoder: Encoder,
    next_stream: u32,
}

impl Frames {
    pub(crate) fn new() -> Self {
        let (out, encoder) = (Vec::new(), Encoder::new());
        Self { out, count: 0, is_urgent: false, encoder, next_stream: 1 }
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn frame(&mut self, kind: Kind, flags: Flags, stream: u32, payload: &[u8]) {
        frame::emit(kind, flags, StreamId::new(stream), payload, &mut self.out);
        self.count += 1;
    }

    pub(crate) fn settings(&mut self, settings: &[Setting]) {
        frame::settings(settings, &mut self.out);
        self.count += 1;
    }

    pub(crate) fn settings_ack(&mut self) {
        self.frame(Kind::Settings, Flags::ACK, 0, b"");
    }

    pub(crate) fn ping(&mut self) {
        self.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]);
    }

    pub(crate) fn reset(&mut self, stream: u32) {
        frame::rst_stream(StreamId::new(stream), ErrorCode::Cancel, &mut self.out);
        self.count += 1;
    }

    pub(crate) fn window_update(&mut self, stream: u32, increment: u32) {
        frame::window_update(StreamId::new(stream), increment, &mut self.out);
        self.count += 1;
    }

    pub(crate) fn data(&mut self, stream: u32, end_stream: bool, payload: &[u8]) {
        self.frame(Kind::Data, Flags::NONE.with_if(end_stream, Flags::END_STREAM), stream, payload);
    }

    /// Returns the next stream identifier.
    pub(crate) fn stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Starts a call of a BenchmarkService method, without ending it.
    pub(crate) fn call(&mut self, method: &str) -> u32 {
        self.call_with(method, &[])
    }

    /// Like [`call`](Self::call), with more fields.
    pub(crate) fn call_with(&mut self, method: &str, more: &[(&str, &str)]) -> u32 {
        self.call_of("application/grpc", method, more)
    }

    /// Sends a complete JSON call of a method by the Connect protocol.
    pub(crate) fn json(&mut self, method: &str, compressed: bool, body: &[u8]) {
        let encoding: &[_] = if compressed { &[("content-encoding", "gzip")] } else { &[] };
        let stream = self.call_of("application/json", method, encoding);
        self.data(stream, true, body);
    }

    fn call_of(&mut self, content_type: &str, method: &str, more: &[(&str, &str)]) -> u32 {
        let path = format!("/grpc.testing.BenchmarkService/{method}");
        let usual = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", &path),
            (":authority", "attacked"),
            ("te", "trailers"),
            ("content-type", content_type),
        ];
        let mut fields = FieldList::new();
        for (name, value) in usual.iter().chain(more) {
            fields.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        }
        let mut block = Vec::new();
        self.encoder.encode(Block { fixed: None, extra: &fields }, &mut block);
        let stream = self.stream();
        self.frame(Kind::Headers, Flags::END_HEADERS, stream, &block);
        stream
    }

    /// Sends a complete unary call with these bytes after the message prefix.
    pub(crate) fn unary(&mut self, more: &[(&str, &str)], compressed: bool, message: &[u8]) {
        let stream = self.call_with("UnaryCall", more);
        let len = u32::try_from(message.len()).expect("messages are small").to_be_bytes();
        let envelope = [&[u8::from(compressed)][..], &len, message].concat();
        let mut parts = envelope.chunks(16 << 10).peekable();
        while let Some(part) = parts.next() {
            self.data(stream, parts.peek().is_none(), part);
        }
    }
}
