//! One connection of an attacker: what it sends, and a thread that sees how the server ends it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::http2::frame::{FrameHead, GoAway, HEAD_LEN, Kind, PREFACE, Setting};

use super::frames::Frames;

/// What is gathered before it is written: many frames a system call.
const WRITE_LEN: usize = 32 * 1024;
/// A server that takes nothing for so long has put an end to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) struct Wire {
    stream: TcpStream,
    frames: Frames,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_frames: u64,
    seen: Arc<Seen>,
}

/// What the reading thread has seen.
#[derive(Default)]
struct Seen {
    end: Mutex<Option<End>>,
    is_paused: AtomicBool,
}

/// How the server ended a connection.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) at: Instant,
    pub(crate) how: String,
}

impl Seen {
    /// The first thing that is seen counts: GOAWAY comes before the end of the stream.
    fn note(&self, how: impl FnOnce() -> String) {
        let mut end = self.end.lock().expect("nobody panics with it");
        end.get_or_insert_with(|| End { at: Instant::now(), how: how() });
    }
}

impl Wire {
    /// Connects and says hello. `acks`: the server's SETTINGS are acknowledged.
    pub(crate) fn connect(target: &str, settings: &[Setting], acks: bool) -> io::Result<Self> {
        let stream = TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        let seen = Arc::<Seen>::default();
        let (reader, watched) = (stream.try_clone()?, Arc::clone(&seen));
        thread::spawn(move || watch(reader, &watched));
        let mut wire = Self { stream, frames: Frames::new(), sent_bytes: 0, sent_frames: 0, seen };
        wire.frames.raw(PREFACE);
        wire.frames.settings(settings);
        if acks {
            wire.frames.settings_ack();
        }
        wire.flush();
        Ok(wire)
    }

    /// From now on nothing is read: the kernel's buffers fill.
    pub(crate) fn stop_reading(&self) {
        self.seen.is_paused.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.seen.end.lock().expect("nobody panics with it").clone()
    }

    /// Sends what `add` adds, perhaps with what comes next; whether the connection still stands.
    pub(crate) fn send(&mut self, add: impl FnOnce(&mut Frames)) -> bool {
        add(&mut self.frames);
        if self.frames.out.len() < WRITE_LEN && self.sent_frames > 0 && !self.frames.is_urgent {
            return self.end().is_none();
        }
        self.flush()
    }

    fn flush(&mut self) -> bool {
        if let Err(error) = self.stream.write_all(&self.frames.out) {
            self.seen.note(|| format!("writing failed: {error}"));
        } else {
            self.sent_bytes += self.frames.out.len() as u64;
            self.sent_frames += self.frames.count;
        }
        self.frames.out.clear();
        (self.frames.count, self.frames.is_urgent) = (0, false);
        self.end().is_none()
    }
}

/// Reads and throws away until the connection is over.
fn watch(mut stream: TcpStream, seen: &Seen) {
    let mut head = [0; HEAD_LEN];
    let mut payload = Vec::new();
    loop {
        while seen.is_paused.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
        if let Err(error) = stream.read_exact(&mut head) {
            let how = match error.kind() {
                io::ErrorKind::UnexpectedEof => "closed".to_owned(),
                _ => error.to_string(),
            };
            return seen.note(|| how);
        }
        let head = FrameHead::parse(&head);
        payload.resize(head.len as usize, 0);
        if stream.read_exact(&mut payload).is_err() {
            return seen.note(|| "closed".to_owned());
        }
        if head.kind == Kind::GoAway
            && let Some((goaway, debug)) = GoAway::parse(&payload)
            && goaway.code != thalweg::http2::ErrorCode::NoError
        {
            let debug = String::from_utf8_lossy(debug).into_owned();
            seen.note(|| format!("GOAWAY {:?}: {debug}", goaway.code));
        }
    }
}
