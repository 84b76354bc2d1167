//! What a connection knows of the input that it is in the middle of: frames, header blocks, windows.

use crate::error::ConnectionError;
use crate::flow::ReceiveWindow;
use crate::frame::{Flags, FrameHead, PREFACE};
use crate::head_cache::{Decoded, HeadCache};
use crate::headers::HeadKind;
use crate::hpack::Decoder;
use crate::stream::{StreamId, Tag};
use crate::violation::Violation;

/// What comes in.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) expect: Expect,
    /// A header block that comes in several frames, and its bytes so far.
    pub(crate) gathering: Option<Gathering>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) decoder: Decoder,
    pub(crate) heads: HeadCache,
    /// The connection's.
    pub(crate) window: ReceiveWindow,
    /// The stream window that the peer may assume: that of SETTINGS once they are acknowledged.
    pub(crate) stream_window: u32,
    /// That of the last SETTINGS.
    pub(crate) stream_window_announced: u32,
    /// The stream that goes before all others with what its owner needs.
    pub(crate) first_served: Option<StreamId>,
    /// A stream does not get the window that its owner needs, or the connection's is withheld: what is used up has to
    /// be looked at.
    pub(crate) is_short: bool,
    /// Counts the batches of input: one ends when `poll_event` finds nothing more.
    pub(crate) batch: u64,
}

/// What the next byte of input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The client's preface, of which so much has come.
    Preface { matched: usize },
    /// A frame's head.
    Frame,
    /// The rest of a DATA frame.
    Data(Incoming),
}

/// A DATA frame whose head was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// `None`: nobody is interested.
    pub(crate) stream: Option<StreamId>,
    pub(crate) data_left: u32,
    pub(crate) padding_left: u32,
    pub(crate) end_stream: bool,
}

/// What the next bytes of the input are, as
/// [`Connection::expected_data`](crate::Connection::expected_data) tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    /// The stream whose body they are part of.
    pub stream: StreamId,
    /// What the owner hung on it.
    pub tag: Tag,
    /// How many they are: the rest of a frame. More than 0.
    pub len: usize,
}

/// What a HEADERS frame says beside its header block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHead {
    pub(crate) stream: StreamId,
    pub(crate) end_stream: bool,
    /// The stream depends on itself, which is an error (RFC 7540 §5.3.1).
    pub(crate) self_dependent: bool,
}

/// A header block of which CONTINUATION frames are still to come.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) head: BlockHead,
    pub(crate) continuations: u32,
}

/// What the input holds of a DATA frame.
#[derive(Debug)]
pub(crate) struct DataPart<'a> {
    pub(crate) stream: Option<StreamId>,
    pub(crate) bytes: &'a [u8],
    /// It is the last part of a frame with END_STREAM.
    pub(crate) end_stream: bool,
}

/// What a gathered block's buffer may keep when the block is done, in bytes.
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
            heads: HeadCache::default(),
            window,
            stream_window,
            stream_window_announced,
            first_served: None,
            is_short: false,
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
        let (part, behind) = input.split_at(len);
        if *part != rest[..len] {
            return Err(ConnectionError::protocol(Violation::PrefaceMissing));
        }
        *input = behind;
        let matched = matched + len;
        self.expect = if matched == PREFACE.len() { Expect::Frame } else { Expect::Preface { matched } };
        Ok(())
    }

    /// Takes what the input holds of a DATA frame that is not whole, or padded.
    pub(crate) fn take_data_part<'a>(
        &mut self,
        mut incoming: Incoming,
        input: &mut &'a [u8],
    ) -> DataPart<'a> {
        let len = input.len().min(incoming.data_left as usize);
        let (bytes, behind) = input.split_at(len);
        incoming.data_left -= len as u32;
        let all_data = incoming.data_left == 0;
        let padding = if all_data { behind.len().min(incoming.padding_left as usize) } else { 0 };
        incoming.padding_left -= padding as u32;
        *input = &behind[padding..];
        let end_stream = incoming.end_stream && all_data;
        if end_stream {
            incoming.end_stream = false;
        }
        self.expect =
            if all_data && incoming.padding_left == 0 { Expect::Frame } else { Expect::Data(incoming) };
        DataPart { stream: incoming.stream, bytes, end_stream }
    }

    /// The rest of a DATA frame that is expected next.
    #[inline]
    pub(crate) fn incoming(&self) -> Option<Incoming> {
        match self.expect {
            Expect::Data(incoming) => Some(incoming),
            Expect::Preface { .. } | Expect::Frame => None,
        }
    }

    /// A HEADERS frame whose header block goes on in CONTINUATION frames.
    pub(crate) fn begin_gathering(&mut self, head: BlockHead, fragment: &[u8]) {
        self.gathered.clear();
        self.gathered.extend_from_slice(fragment);
        self.gathering = Some(Gathering { head, continuations: 0 });
    }

    /// Adds a CONTINUATION frame (RFC 9113 §6.10) to the block that is gathered, which must be of its stream. Gives the
    /// block's head when it is whole.
    pub(crate) fn gather(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        continuations_max: u32,
        block_len_max: usize,
    ) -> Result<Option<BlockHead>, ConnectionError> {
        let Some(gathering) = &mut self.gathering else {
            return Ok(None);
        };
        if gathering.head.stream != frame.stream {
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
        let is_whole = frame.flags.contains(Flags::END_HEADERS);
        Ok(if is_whole { self.gathering.take().map(|gathering| gathering.head) } else { None })
    }

    /// Takes back the buffer of a gathered block, which is done.
    pub(crate) fn keep_gathered(&mut self, mut block: Vec<u8>) {
        block.clear();
        block.shrink_to(GATHERED_KEPT_MAX);
        self.gathered = block;
    }

    /// Decodes and validates a header block; the head is then `heads.current()`.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        kind: HeadKind,
        block: &[u8],
        list_size_max: u32,
    ) -> Result<Decoded, ConnectionError> {
        self.heads.decode(&mut self.decoder, kind, block, list_size_max as usize)
    }

    /// Decodes a header block that nobody is interested in, for the HPACK table's sake.
    #[cold]
    pub(crate) fn decode_unread(&mut self, block: &[u8]) -> Result<(), ConnectionError> {
        self.heads.decode_unread(&mut self.decoder, block)
    }

    pub(crate) fn shrink(&mut self) {
        self.decoder.shrink();
        self.heads.shrink();
        if self.gathering.is_none() {
            self.gathered = Vec::new();
        }
    }
}
