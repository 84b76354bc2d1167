//! A connection of an attacker, with a thread that detects how the server ends it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, GoAway, Kind, PREFACE, Setting};

use super::frames::Frames;
use super::outcome::{CloseInfo, ConnectionEnd};

/// Bytes buffered before a write, to send many frames per system call.
const WRITE_LEN: usize = 32 * 1024;
/// Write timeout, after which the server is considered to have ended the attack.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) struct Wire {
    stream: TcpStream,
    frames: Frames,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_frames: u64,
    watched: Arc<ReaderState>,
}

/// State shared with the reading thread.
#[derive(Default)]
struct ReaderState {
    seen: ConnectionEnd,
    is_paused: AtomicBool,
    /// Whether the end of a call counts too.
    counts_calls: AtomicBool,
}

impl Wire {
    /// Connects and sends the preface. `acks` acknowledges the server's SETTINGS.
    pub(crate) fn connect(target: &str, settings: &[Setting], acks: bool) -> io::Result<Self> {
        let stream = TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        let watched = Arc::<ReaderState>::default();
        let (reader, shared) = (stream.try_clone()?, Arc::clone(&watched));
        thread::spawn(move || watch(reader, &shared));
        let mut wire = Self { stream, frames: Frames::new(), sent_bytes: 0, sent_frames: 0, watched };
        wire.frames.raw(PREFACE);
        wire.frames.settings(settings);
        if acks {
            wire.frames.settings_ack();
        }
        wire.flush();
        Ok(wire)
    }

    /// Stops reading, so that the kernel's buffers fill.
    pub(crate) fn stop_reading(&self) {
        self.watched.is_paused.store(true, Ordering::Relaxed);
    }

    /// Counts the end of a call as that of the connection from now on.
    pub(crate) fn count_calls(&self) {
        self.watched.counts_calls.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) -> Option<CloseInfo> {
        self.watched.seen.end()
    }

    /// Queues the frames of `add` and sends them once enough are buffered. Returns whether the connection is still
    /// open.
    pub(crate) fn send(&mut self, add: impl FnOnce(&mut Frames)) -> bool {
        add(&mut self.frames);
        if self.frames.out.len() < WRITE_LEN && self.sent_frames > 0 && !self.frames.is_urgent {
            return self.end().is_none();
        }
        self.flush()
    }

    fn flush(&mut self) -> bool {
        if let Err(error) = self.stream.write_all(&self.frames.out) {
            self.watched.seen.note(|| format!("writing failed: {error}"));
        } else {
            self.sent_bytes += self.frames.out.len() as u64;
            self.sent_frames += self.frames.count;
        }
        self.frames.out.clear();
        (self.frames.count, self.frames.is_urgent) = (0, false);
        self.end().is_none()
    }
}

/// Discards input until the connection ends.
fn watch(mut stream: TcpStream, watched: &ReaderState) {
    let seen = &watched.seen;
    let mut head = [0; FRAME_HEADER_LEN];
    let mut payload = Vec::new();
    loop {
        while watched.is_paused.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
        if let Err(error) = stream.read_exact(&mut head) {
            let how = match error.kind() {
                io::ErrorKind::UnexpectedEof => "closed".to_owned(),
                _ => error.to_string(),
            };
            return seen.note(|| how);
        }
        let head = FrameHeader::parse(&head);
        payload.resize(head.len as usize, 0);
        if stream.read_exact(&mut payload).is_err() {
            return seen.note(|| "closed".to_owned());
        }
        if watched.counts_calls.load(Ordering::Relaxed)
            && let Some(how) = end_of_call(head, &payload)
        {
            seen.note(|| how);
        }
        if head.kind == Kind::GoAway
            && let Some((goaway, debug)) = GoAway::parse(&payload)
            && goaway.code != ErrorCode::NoError
        {
            let debug = String::from_utf8_lossy(debug).into_owned();
            seen.note(|| format!("GOAWAY {:?}: {debug}", goaway.code));
        }
    }
}

fn end_of_call(head: FrameHeader, payload: &[u8]) -> Option<String> {
    match head.kind {
        Kind::RstStream => {
            let code = payload.try_into().map_or(0, u32::from_be_bytes);
            Some(format!("RST_STREAM {:?}", ErrorCode::from(code)))
        }
        Kind::Headers if head.flags.contains(Flags::END_STREAM) => Some("a status".to_owned()),
        _ => None,
    }
}
