//! Checks the wire: each side's frames must be legal after its earlier ones, and windows must add up.

use std::collections::{BTreeSet, VecDeque};

use thalweg_http2::Config;
use thalweg_http2::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, Kind, PREFACE};

use super::{Both, Side};

/// The connection's initial window (RFC 9113 §6.9.2), in bytes.
const WINDOW_DEFAULT: u64 = 65_535;

/// Both directions of the wire.
#[derive(Debug)]
pub(super) struct Monitor {
    senders: Both<SenderState>,
    /// Bytes written by both sides, if recorded.
    recording: Option<Both<Vec<u8>>>,
}

/// Frames sent by one side.
#[derive(Debug)]
struct SenderState {
    /// The start of an incomplete frame, without DATA payload.
    pending: Vec<u8>,
    /// Remaining bytes of the preface or of a DATA frame's payload.
    skip: usize,
    /// Flow-controlled bytes so far, and their count after each DATA frame not yet covered by a WINDOW_UPDATE.
    sent: u64,
    sent_after_frame: VecDeque<u64>,
    /// Bytes returned by the connection's WINDOW_UPDATEs, without the initial enlargement to the configured window.
    returned: u64,
    enlargement_left: u64,
    connection_window: u64,
    /// Streams on which it sent END_STREAM, and those that it reset.
    ended: BTreeSet<u32>,
    reset: BTreeSet<u32>,
    /// The stream of an unfinished header block.
    block_of: Option<u32>,
    frame_len_max: u32,
}

impl Monitor {
    pub(super) fn new(client: &Config, server: &Config) -> Monitor {
        let sender = |local: &Config, peer: &Config, preface| SenderState {
            pending: Vec::new(),
            skip: preface,
            sent: 0,
            sent_after_frame: VecDeque::new(),
            returned: 0,
            enlargement_left: u64::from(local.connection_window) - WINDOW_DEFAULT,
            connection_window: u64::from(local.connection_window),
            ended: BTreeSet::new(),
            reset: BTreeSet::new(),
            block_of: None,
            frame_len_max: peer.max_frame_size,
        };
        let senders = Both([sender(client, server, PREFACE.len()), sender(server, client, 0)]);
        Monitor { senders, recording: None }
    }

    /// Starts recording the written bytes.
    pub(super) fn record(&mut self) {
        self.recording = Some(Both::default());
    }

    /// Returns the bytes written since [`record`](Self::record).
    pub(super) fn into_recording(self) -> Both<Vec<u8>> {
        self.recording.unwrap_or_default()
    }

    /// Checks `bytes` written by `side`.
    pub(super) fn observe(&mut self, side: Side, mut bytes: &[u8]) {
        if let Some(recording) = &mut self.recording {
            recording[side].extend_from_slice(bytes);
        }
        loop {
            let sender = &mut self.senders[side];
            let skipped = sender.skip.min(bytes.len());
            (sender.skip, bytes) = (sender.skip - skipped, &bytes[skipped..]);
            let needed = sender.needed();
            if bytes.is_empty() || sender.skip > 0 {
                return;
            }
            let taken = (needed - sender.pending.len()).min(bytes.len());
            sender.pending.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            // A complete head may show that the frame needs more.
            if sender.pending.len() == sender.needed() {
                self.check_frame(side);
            }
        }
    }

    /// Bytes that `side` may send on the connection, according to the other side's WINDOW_UPDATEs.
    pub(super) fn window(&self, side: Side) -> u64 {
        let receiver = &self.senders[side.other()];
        receiver.connection_window - receiver.enlargement_left + receiver.returned - self.senders[side].sent
    }

    /// Flow-controlled bytes sent by `side`.
    pub(super) fn sent(&self, side: Side) -> u64 {
        self.senders[side].sent
    }

    /// Checks windows after everything was received and released: they are full, except for amounts not worth a frame.
    pub(super) fn assert_windows_full(&self) {
        for side in Side::BOTH {
            let receiver = &self.senders[side.other()];
            let missing = self.senders[side].sent - receiver.returned;
            let kept_back_max = (receiver.connection_window / 2).max(1);
            assert!(missing < kept_back_max, "{missing} bytes of the window of {side:?} are lost");
        }
    }

    fn check_frame(&mut self, side: Side) {
        let pending = std::mem::take(&mut self.senders[side].pending);
        let (head, payload) = pending.split_first_chunk::<FRAME_HEADER_LEN>().expect("a frame has a head");
        let head = FrameHeader::parse(head);
        self.senders[side].check_header(head);
        if head.kind == Kind::WindowUpdate && head.stream.get() == 0 {
            let increment = u32::from_be_bytes(payload.try_into().expect("4 bytes"));
            self.return_window(side, u64::from(increment));
        }
    }

    /// Checks that a WINDOW_UPDATE returns everything received since the last one: it always ends at a frame boundary
    /// of the sender.
    fn return_window(&mut self, side: Side, increment: u64) {
        let receiver = &mut self.senders[side];
        if receiver.enlargement_left > 0 {
            assert_eq!(
                increment, receiver.enlargement_left,
                "{side:?} enlarges its window by something else"
            );
            receiver.enlargement_left = 0;
            return;
        }
        receiver.returned += increment;
        let returned = receiver.returned;
        let sender = &mut self.senders[side.other()];
        while sender.sent_after_frame.front().is_some_and(|&sent| sent < returned) {
            sender.sent_after_frame.pop_front();
        }
        let exact = sender.sent_after_frame.front() == Some(&returned);
        assert!(exact, "{side:?} gave {returned} bytes back, which is not what it received");
    }
}

impl SenderState {
    /// Bytes of a frame that are parsed together.
    fn needed(&self) -> usize {
        match self.pending.first_chunk::<FRAME_HEADER_LEN>() {
            None => FRAME_HEADER_LEN,
            Some(head) => match FrameHeader::parse(head) {
                FrameHeader { kind: Kind::Data, .. } => FRAME_HEADER_LEN,
                FrameHeader { len, .. } => FRAME_HEADER_LEN + len as usize,
            },
        }
    }

    fn check_header(&mut self, head: FrameHeader) {
        let FrameHeader { len, kind, flags, stream } = head;
        let stream = stream.get();
        assert!(len <= self.frame_len_max, "a frame of {len} bytes is larger than the peer takes");
        if let Some(block) = self.block_of {
            assert_eq!((kind, stream), (Kind::Continuation, block), "a header block is interrupted");
        }
        if matches!(kind, Kind::Data | Kind::Headers | Kind::Continuation) {
            if kind != Kind::Continuation {
                assert!(
                    !self.ended.contains(&stream),
                    "{kind:?} on stream {stream}, which this side has ended"
                );
            }
            if flags.contains(Flags::END_STREAM) && kind != Kind::Continuation {
                self.ended.insert(stream);
            }
        }
        if stream > 0 && !matches!(kind, Kind::Priority) {
            assert!(!self.reset.contains(&stream), "{kind:?} on stream {stream}, which this side has reset");
        }
        match kind {
            Kind::Data => {
                self.skip = len as usize;
                self.sent += u64::from(len);
                self.sent_after_frame.push_back(self.sent);
            }
            Kind::Headers | Kind::Continuation => {
                self.block_of = (!flags.contains(Flags::END_HEADERS)).then_some(stream);
            }
            Kind::RstStream => {
                self.reset.insert(stream);
            }
            _ => {}
        }
    }
}
