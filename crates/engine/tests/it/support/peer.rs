//! One end of a connection, played by a test frame by frame. The tests of `thalweg` use this file, too.

use thalweg_engine::Encoding;
use thalweg_engine::http2::frame::{
    self, FRAME_HEADER_LEN, Flags, FrameHeader, GoAway, Kind, PREFACE, Setting,
};
use thalweg_engine::http2::hpack::{DEFAULT_TABLE_SIZE, Decoder, Encoder};
use thalweg_engine::http2::{Block, ErrorCode, FieldList, Indexing, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Capacity of the pipe in each direction, in bytes. The peer under test blocks beyond it.
pub(crate) const PIPE: usize = 16 * 1024;

pub(crate) const REQUEST: &[(&str, &str)] = &[
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/test.Echo/Echo"),
    (":authority", "test"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
];
pub(crate) const OK_HEADERS: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
pub(crate) const OK: &[(&str, &str)] = &[("grpc-status", "0")];

/// A received frame.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) stream: u32,
    pub(crate) end_stream: bool,
    /// For HEADERS: the fields, one per line.
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// Returns the code of RST_STREAM or GOAWAY.
    pub(crate) fn code(&self) -> ErrorCode {
        let at = if self.kind == Kind::GoAway { 4 } else { 0 };
        ErrorCode::from(u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes")))
    }
}

pub(crate) struct Peer {
    pub(crate) io: DuplexStream,
    pub(crate) out: Vec<u8>,
    encoder: Encoder,
    decoder: Decoder,
}

impl Peer {
    pub(crate) fn new(io: DuplexStream) -> Self {
        Self { io, out: Vec::new(), encoder: Encoder::new(), decoder: Decoder::new(DEFAULT_TABLE_SIZE) }
    }

    /// Creates a client that has only completed the handshake.
    pub(crate) async fn client(io: DuplexStream) -> Self {
        let mut peer = Self::new(io);
        peer.out.extend_from_slice(PREFACE);
        peer.settings(&[]).frame(Kind::Settings, Flags::ACK, 0, b"").send().await;
        peer
    }

    /// Creates a server that has only completed the handshake.
    pub(crate) async fn server(io: DuplexStream, settings: &[Setting]) -> Self {
        let mut peer = Self::new(io);
        let mut preface = [0; PREFACE.len()];
        peer.io.read_exact(&mut preface).await.expect("a preface");
        peer.settings(settings).frame(Kind::Settings, Flags::ACK, 0, b"").send().await;
        peer
    }

    pub(crate) fn frame(&mut self, kind: Kind, flags: Flags, stream: u32, payload: &[u8]) -> &mut Self {
        frame::emit(kind, flags, StreamId::new(stream), payload, &mut self.out);
        self
    }

    pub(crate) fn settings(&mut self, settings: &[Setting]) -> &mut Self {
        frame::settings(settings, &mut self.out);
        self
    }

    pub(crate) fn headers(&mut self, stream: u32, end_stream: bool, pairs: &[(&str, &str)]) -> &mut Self {
        self.headers_by(Indexing::Literal, stream, end_stream, pairs)
    }

    pub(crate) fn headers_by(
        &mut self,
        indexing: Indexing,
        stream: u32,
        end_stream: bool,
        pairs: &[(&str, &str)],
    ) -> &mut Self {
        let mut fields = FieldList::new();
        for (name, value) in pairs {
            fields.push(name.as_bytes(), value.as_bytes(), indexing);
        }
        let mut block = Vec::new();
        self.encoder.encode(Block { fixed: None, extra: &fields }, &mut block);
        let flags = Flags::END_HEADERS.with_if(end_stream, Flags::END_STREAM);
        self.frame(Kind::Headers, flags, stream, &block)
    }

    pub(crate) fn data(&mut self, stream: u32, end_stream: bool, payload: &[u8]) -> &mut Self {
        self.frame(Kind::Data, Flags::NONE.with_if(end_stream, Flags::END_STREAM), stream, payload)
    }

    /// Sends one complete message.
    pub(crate) fn message(&mut self, stream: u32, end_stream: bool, message: &[u8]) -> &mut Self {
        self.data(stream, end_stream, &envelope(message))
    }

    pub(crate) fn reset(&mut self, stream: u32, code: ErrorCode) -> &mut Self {
        frame::rst_stream(StreamId::new(stream), code, &mut self.out);
        self
    }

    pub(crate) fn go_away(&mut self, last_stream: u32) -> &mut Self {
        let goaway = GoAway { last_stream: StreamId::new(last_stream), code: ErrorCode::NoError };
        goaway.emit(b"", &mut self.out);
        self
    }

    pub(crate) async fn send(&mut self) {
        let out = std::mem::take(&mut self.out);
        self.io.write_all(&out).await.expect("the other end reads");
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut header = [0; FRAME_HEADER_LEN];
        self.io.read_exact(&mut header).await.ok()?;
        let header = FrameHeader::parse(&header);
        let mut payload = vec![0; header.len as usize];
        self.io.read_exact(&mut payload).await.ok()?;
        if header.kind == Kind::Headers {
            let mut fields = FieldList::new();
            self.decoder.decode(&payload, 1 << 20, &mut fields).expect("a header block");
            payload =
                fields.iter().flat_map(|field| [field.name, b": ", field.value, b"\n"].concat()).collect();
        }
        let carries_end = matches!(header.kind, Kind::Headers | Kind::Data);
        let end_stream = carries_end && header.flags.contains(Flags::END_STREAM);
        Some(Frame { kind: header.kind, stream: header.stream.get(), end_stream, payload })
    }

    /// Returns the next frame of this kind and skips those before it.
    pub(crate) async fn next_of(&mut self, kind: Kind) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("{kind:?} must come"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Returns all frames up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

pub(crate) fn envelope(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).expect("a small message");
    [&[0], &len.to_be_bytes()[..], message].concat()
}

/// Like [`envelope`], for a message compressed with gzip.
pub(crate) fn compressed_envelope(message: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    Encoding::Gzip.compress(message, &mut compressed);
    let mut envelope = envelope(&compressed);
    envelope[0] = 1;
    envelope
}
