//! Reads packets from a file.

use std::io::{self, Read};
use std::time::Duration;

use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use thiserror::Error;

/// Initial and maximum buffer size. tcpdump packets have at most 256 KiB.
const BUFFER_LEN: usize = 128 << 10;
const BUFFER_LEN_MAX: usize = 16 << 20;
/// Length of a pcap file header.
const PCAP_HEADER_LEN: u32 = 24;
/// Prefix of a pcapng file with the length and byte order of its first block.
const NG_MAGIC_END: u64 = 12;
/// Maximum length of the first pcapng block, which may have comments.
const NG_HEADER_LEN_MAX: u32 = 64 << 10;
/// Maximum interfaces per section.
const INTERFACES_MAX: usize = 4096;

/// Error for an input that cannot be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The input is neither pcap nor pcapng.
    #[error("not a capture: expected pcap or pcapng")]
    Format,
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Returns whether an input that starts with these bytes is a capture. Four bytes are sufficient.
pub fn is_capture(begin: &[u8]) -> bool {
    let Some(magic) = begin.first_chunk::<4>() else { return false };
    let pcap = |magic: u32| matches!(magic, 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34);
    *magic == [0x0a, 0x0d, 0x0d, 0x0a] || pcap(u32::from_le_bytes(*magic)) || pcap(u32::from_be_bytes(*magic))
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// Time since 1970.
    pub(crate) at: Duration,
    pub(crate) link: Linktype,
    pub(crate) bytes: &'a [u8],
    /// Number of bytes missing at the end.
    pub(crate) cut: usize,
}

/// An interface of pcapng, or the only one of pcap.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    /// Ticks per second.
    resolution: u64,
    offset_s: i64,
    snap_len: u32,
}

impl Interface {
    fn time(&self, ticks: u64) -> Duration {
        let resolution = self.resolution.max(1);
        let ns = u128::from(ticks % resolution) * 1_000_000_000 / u128::from(resolution);
        let seconds = (ticks / resolution).saturating_add_signed(self.offset_s);
        Duration::new(seconds, ns as u32)
    }
}

/// Passes on each packet until the end, or until `each` returns false. Returns the problem that ended reading, if any.
pub(crate) fn packets(
    input: impl Read + Send,
    mut each: impl FnMut(Packet<'_>) -> bool,
) -> Result<Option<String>, CaptureError> {
    let mut source = ErrorKeeper { input, error: None };
    // The parser needs the file header in one read, but a pipe may split it.
    let header = file_header(&mut &mut source)?;
    let created = create_reader(BUFFER_LEN, io::Cursor::new(header).chain(&mut source));
    let mut reader = created.map_err(|_| CaptureError::Format)?;
    let mut buffer_len = BUFFER_LEN;
    let mut interfaces: Vec<Interface> = Vec::new();
    let ends_early = || Some("truncated in the middle of a packet".to_owned());
    let problem = loop {
        let is_too_small = match reader.next() {
            Ok((len, block)) => {
                let continues = packet(&block, &mut interfaces).is_none_or(&mut each);
                reader.consume(len);
                if !continues {
                    break None;
                }
                continue;
            }
            Err(PcapError::Eof) => break None,
            Err(PcapError::UnexpectedEof) => break ends_early(),
            Err(PcapError::BufferTooSmall) => Some(true),
            Err(PcapError::Incomplete(_)) => Some(false),
            Err(_) => None,
        };
        match is_too_small {
            None => break Some(format!("malformed at offset {}", reader.consumed())),
            Some(_) if reader.reader_exhausted() => break ends_early(),
            Some(true) if buffer_len >= BUFFER_LEN_MAX => {
                break Some(format!("a block exceeds {} MiB", BUFFER_LEN_MAX >> 20));
            }
            Some(true) => {
                buffer_len *= 2;
                reader.grow(buffer_len);
            }
            Some(false) => {}
        }
        // The error is in `source`.
        if reader.refill().is_err() {
            break None;
        }
    };
    drop(reader);
    match source.error {
        Some(error) => Err(error.into()),
        None => Ok(problem),
    }
}

/// Reads the pcap file header or the first pcapng block.
fn file_header(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    input.take(NG_MAGIC_END).read_to_end(&mut header)?;
    let len = match header[..] {
        [0x0a, 0x0d, 0x0d, 0x0a, l0, l1, l2, l3, 0x1a, ..] => u32::from_be_bytes([l0, l1, l2, l3]),
        [0x0a, 0x0d, 0x0d, 0x0a, l0, l1, l2, l3, ..] => u32::from_le_bytes([l0, l1, l2, l3]),
        _ => PCAP_HEADER_LEN,
    };
    let rest = u64::from(len.min(NG_HEADER_LEN_MAX)).saturating_sub(header.len() as u64);
    input.take(rest).read_to_end(&mut header)?;
    Ok(header)
}

/// Returns the packet in a block, if any. Records interfaces.
fn packet<'a>(block: &'a PcapBlockOwned<'a>, interfaces: &mut Vec<Interface>) -> Option<Packet<'a>> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(Interface { link: header.network, resolution, offset_s: 0, snap_len: 0 });
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = interfaces.first()?;
            let ticks = u64::from(packet.ts_sec) * interface.resolution + u64::from(packet.ts_usec);
            let cut = (packet.origlen as usize).saturating_sub(packet.data.len());
            Some(Packet { at: interface.time(ticks), link: interface.link, bytes: packet.data, cut })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            if interfaces.len() < INTERFACES_MAX {
                interfaces.push(Interface {
                    link: described.linktype,
                    resolution: described.ts_resolution().unwrap_or(1_000_000),
                    offset_s: described.ts_offset(),
                    snap_len: described.snaplen,
                });
            }
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interfaces.get(packet.if_id as usize)?;
            // `data` is padded to four bytes.
            let bytes = packet.data.get(..packet.caplen as usize)?;
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let cut = (packet.origlen as usize).saturating_sub(bytes.len());
            Some(Packet { at: interface.time(ticks), link: interface.link, bytes, cut })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = interfaces.first()?;
            let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
            let len = packet.origlen.min(snap_len) as usize;
            let bytes = &packet.data[..len.min(packet.data.len())];
            let cut = (packet.origlen as usize).saturating_sub(bytes.len());
            // Simple packets have no time.
            Some(Packet { at: Duration::ZERO, link: interface.link, bytes, cut })
        }
        PcapBlockOwned::NG(_) => None,
    }
}

/// A reader that keeps its error, because the parser does not pass it on.
struct ErrorKeeper<R> {
    input: R,
    error: Option<io::Error>,
}

impl<R: Read> Read for &mut ErrorKeeper<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.error = Some(error);
            }
            kind.into()
        })
    }
}
