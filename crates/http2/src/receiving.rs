//! State of the input: the current frame, header block and windows.

use crate::error::ConnectionError;
use crate::flow::ReceiveWindow;
use crate::frame::{Flags, FrameHeader, PREFACE};
use crate::headers::HeadersKind;
use crate::headers_cache::{Decoded, HeadersCache};
use crate::hpack::Decoder;
use crate::stream::{StreamId, Tag};
use crate::violation::Violation;

/// State of the receiving side.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) expect: Expect,
    /// An incomplete header block, and its bytes so far.
    pub(crate) gathering: Option<Gathering>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) decoder: Decoder,
    pub(crate) headers_cache: HeadersCache,
    /// The connection's window.
    pub(crate) window: ReceiveWindow,
    /// The stream window that the peer may assume: that of SETTINGS once they are acknowledged.
    pub(crate) stream_window: u32,
    /// The stream window in the last SETTINGS.
    pub(crate) stream_window_announced: u32,
    /// The stream that gets the window that the driver needs before all others.
    pub(crate) first_served: Option<StreamId>,
    /// A stream lacks window that the driver needs, or the connection's window is withheld. Releases must then be
    /// checked.
    pub(crate) is_window_withheld: bool,
    /// Number of the current batch of input; a batch ends when `poll_event` finds nothing more.
    pub(crate) batch: u64,
}

/// The expected input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The client's preface, of which `matched` bytes have arrived.
    Preface { matched: usize },
    /// A frame header.
    Frame,
    /// The rest of a DATA frame.
    Data(IncomingData),
}

/// A DATA frame whose header was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncomingData {
    /// `None` if the data is discarded.
    pub(crate) stream: Option<StreamId>,
    pub(crate) data_left: u32,
    pub(crate) padding_left: u32,
    pub(crate) end_stream: bool,
}

/// The next bytes of the input, as returned by [`Connection::expected_data`](crate::Connection::expected_data).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    /// The stream to whose body they belong.
    pub stream: StreamId,
    /// The stream's tag.
    pub tag: Tag,
    /// Their number: the rest of a frame. More than 0.
    pub len: usize,
}

/// The content of a HEADERS frame besides its header block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockInfo {
    pub(crate) stream: StreamId,
    pub(crate) end_stream: bool,
    /// The stream depends on itself, which is an error (RFC 7540 §5.3.1).
    pub(crate) self_dependent: bool,
}

/// A header block that awaits CONTINUATION frames.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) info: BlockInfo,
    pub(crate) continuations: u32,
}

/// The part of a DATA frame in the input.
#[derive(Debug)]
pub(crate) struct DataPart<'a> {
    pub(crate) stream: Option<StreamId>,
    pub(crate) bytes: &'a [u8],
    /// The last part of a frame with END_STREAM.
    pub(crate) end_stream: bool,
}

/// Capacity in bytes that the buffer of header blocks keeps between blocks.
const GATHERED_KEPT_MAX: usize = 1024;

impl Receiving {
    pub(crate) fn new(
        expect: Expect,
        decoder: Decoder,
        window: ReceiveWindow,
        stream_window: u32,
        stream_window_announced: u32,
    ) -> Receiving {
        Receiving {
            expect,
            gathering: None,
            gathered: Vec::new(),
            decoder,
            headers_cache: HeadersCache::default(),
            window,
            stream_window,
            stream_window_announced,
            first_served: None,
            is_window_withheld: false,
            batch: 0,
        }
    }

    /// RFC 9113 §3.4
    pub(crate) fn receive_preface(
        &mut self,
        matched: usize,
        input: &mut &[u8],
    ) -> Result<(), ConnectionError> {
        let rest = &PREFACE[matched..];
        let len = rest.len().min(input.len());
        let (part, remaining) = input.split_at(len);
        if *part != rest[..len] {
            return Err(ConnectionError::protocol(Violation::PrefaceMissing));
        }
        *input = remaining;
        let matched = matched + len;
        self.expect = if matched == PREFACE.len() { Expect::Frame } else { Expect::Preface { matched } };
        Ok(())
    }

    /// Takes the available part of an incomplete or padded DATA frame.
    pub(crate) fn take_data_part<'a>(
        &mut self,
        mut incoming: IncomingData,
        input: &mut &'a [u8],
    ) -> DataPart<'a> {
        let len = input.len().min(incoming.data_left as usize);
        let (bytes, remaining) = input.split_at(len);
        incoming.data_left -= len as u32;
        let all_data = incoming.data_left == 0;
        let padding = if all_data { remaining.len().min(incoming.padding_left as usize) } else { 0 };
        incoming.padding_left -= padding as u32;
        *input = &remaining[padding..];
        let end_stream = incoming.end_stream && all_data;
        if end_stream {
            incoming.end_stream = false;
        }
        self.expect =
            if all_data && incoming.padding_left == 0 { Expect::Frame } else { Expect::Data(incoming) };
        DataPart { stream: incoming.stream, bytes, end_stream }
    }

    /// Returns the rest of the current DATA frame, if any.
    #[inline]
    pub(crate) fn incoming_data(&self) -> Option<IncomingData> {
        match self.expect {
            Expect::Data(incoming) => Some(incoming),
            Expect::Preface { .. } | Expect::Frame => None,
        }
    }

    /// Starts a header block that continues in CONTINUATION frames.
    pub(crate) fn begin_gathering(&mut self, info: BlockInfo, fragment: &[u8]) {
        self.gathered.clear();
        self.gathered.extend_from_slice(fragment);
        self.gathering = Some(Gathering { info, continuations: 0 });
    }

    /// Adds a CONTINUATION frame (RFC 9113 §6.10) to the current block, which must be on the same stream. Returns the
    /// block's description when it is complete.
    pub(crate) fn gather(
        &mut self,
        frame: FrameHeader,
        payload: &[u8],
        continuations_max: u32,
        block_len_max: usize,
    ) -> Result<Option<BlockInfo>, ConnectionError> {
        let Some(gathering) = &mut self.gathering else {
            return Ok(None);
        };
        if gathering.info.stream != frame.stream {
            return Err(ConnectionError::protocol(Violation::ContinuationOnOtherStream));
        }
        gathering.continuations += 1;
        if gathering.continuations > continuations_max {
            return Err(ConnectionError::calm(Violation::ContinuationsExceeded));
        }
        if self.gathered.len() + payload.len() > block_len_max {
            return Err(ConnectionError::calm(Violation::HeaderBlockTooLong));
        }
        self.gathered.extend_from_slice(payload);
        let is_complete = frame.flags.contains(Flags::END_HEADERS);
        Ok(if is_complete { self.gathering.take().map(|gathering| gathering.info) } else { None })
    }

    /// Returns the buffer of a finished block for reuse.
    pub(crate) fn keep_gathered(&mut self, mut block: Vec<u8>) {
        block.clear();
        block.shrink_to(GATHERED_KEPT_MAX);
        self.gathered = block;
    }

    /// Decodes and validates a header block; `headers_cache.current()` then returns the headers.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        kind: HeadersKind,
        block: &[u8],
        list_size_max: u32,
    ) -> Result<Decoded, ConnectionError> {
        self.headers_cache.decode(&mut self.decoder, kind, block, list_size_max as usize)
    }

    /// Decodes a header block only to keep the HPACK table in sync.
    #[cold]
    pub(crate) fn decode_and_discard(&mut self, block: &[u8]) -> Result<(), ConnectionError> {
        self.headers_cache.decode_and_discard(&mut self.decoder, block)
    }

    pub(crate) fn shrink(&mut self) {
        self.decoder.shrink();
        self.headers_cache.shrink();
        if self.gathering.is_none() {
            self.gathered = Vec::new();
        }
    }
}
