//! Splits one direction of HTTP/2 into frames. DATA is passed through; other frames are buffered until complete.

use thalweg_http2::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, Kind};

/// The next part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Part of a DATA frame without padding. The last part may be empty.
    Data { stream: u32, bytes: &'a [u8], ends_stream: bool },
    /// Another complete frame.
    Frame(FrameHeader, &'a [u8]),
}

/// Splits bytes into frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    state: FrameState,
    buffered: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum FrameState {
    #[default]
    Head,
    Payload(FrameHeader),
    /// The last frame was returned, and its payload is still buffered.
    Returned,
    /// DATA with PADDED, before the padding length.
    Padded(FrameHeader),
    /// Remaining bytes of DATA and of padding after it.
    Data(FrameHeader, usize, usize),
    /// Remaining bytes of padding.
    Padding(usize),
}

impl Frames {
    /// Returns the next part that `input` completes, or `None` if more input is needed. Fails if the bytes are not
    /// valid frames.
    pub(crate) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        len_max: usize,
    ) -> Result<Option<Part<'a>>, &'static str> {
        loop {
            match self.state {
                FrameState::Head => {
                    if !self.fill(input, FRAME_HEADER_LEN) {
                        return Ok(None);
                    }
                    let head = self.buffered.first_chunk::<FRAME_HEADER_LEN>().map(FrameHeader::parse);
                    self.buffered.clear();
                    let Some(head) = head else { return Ok(None) };
                    let len = head.len as usize;
                    self.state = match head.kind {
                        Kind::Data if head.flags.contains(Flags::PADDED) => FrameState::Padded(head),
                        Kind::Data => FrameState::Data(head, len, 0),
                        _ if len > len_max => return Err("invalid frame length"),
                        _ => FrameState::Payload(head),
                    };
                }
                FrameState::Payload(head) => {
                    if !self.fill(input, head.len as usize) {
                        return Ok(None);
                    }
                    self.state = FrameState::Returned;
                    return Ok(Some(Part::Frame(head, &self.buffered)));
                }
                FrameState::Returned => {
                    self.buffered.clear();
                    self.state = FrameState::Head;
                }
                FrameState::Padded(head) => {
                    let Some((&padding, rest)) = input.split_first() else { return Ok(None) };
                    *input = rest;
                    let len = (head.len as usize).checked_sub(1 + usize::from(padding));
                    let Some(len) = len else { return Err("a frame's padding is longer than the frame") };
                    self.state = FrameState::Data(head, len, usize::from(padding));
                }
                FrameState::Data(head, left, padding) => {
                    if left > 0 && input.is_empty() {
                        return Ok(None);
                    }
                    let (bytes, rest) = input.split_at(left.min(input.len()));
                    *input = rest;
                    let left = left - bytes.len();
                    self.state = match left {
                        0 => FrameState::Padding(padding),
                        _ => FrameState::Data(head, left, padding),
                    };
                    let ends_stream = left == 0 && head.flags.contains(Flags::END_STREAM);
                    return Ok(Some(Part::Data { stream: head.stream.get(), bytes, ends_stream }));
                }
                FrameState::Padding(left) => {
                    let gone = left.min(input.len());
                    *input = &input[gone..];
                    self.state =
                        if gone == left { FrameState::Head } else { FrameState::Padding(left - gone) };
                    if gone < left {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Buffers up to `len` bytes. Returns whether they are complete.
    fn fill(&mut self, input: &mut &[u8], len: usize) -> bool {
        let wanted = len.saturating_sub(self.buffered.len()).min(input.len());
        let (bytes, rest) = input.split_at(wanted);
        self.buffered.extend_from_slice(bytes);
        *input = rest;
        self.buffered.len() >= len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_http2::StreamId;
    use thalweg_http2::frame::emit;

    #[test]
    fn frames_are_split_the_same_for_any_piece_length() {
        let stream = StreamId::new(5);
        let mut wire = Vec::new();
        emit(Kind::Headers, Flags::END_HEADERS, stream, b"block", &mut wire);
        emit(Kind::Data, Flags::PADDED, stream, b"\x02abcPP", &mut wire);
        emit(Kind::Data, Flags::NONE, stream, b"", &mut wire);
        emit(Kind::Data, Flags::END_STREAM.with(Flags::PADDED), stream, b"\x01P", &mut wire);
        emit(Kind::Ping, Flags::ACK, StreamId::CONNECTION, &[7; 8], &mut wire);
        for piece in 1..=wire.len() {
            let mut frames = Frames::default();
            let (mut data, mut ends, mut others) = (Vec::new(), 0, Vec::new());
            for mut input in wire.chunks(piece) {
                while let Some(part) = frames.next(&mut input, 100).unwrap() {
                    match part {
                        Part::Data { stream: 5, bytes, ends_stream } => {
                            data.extend_from_slice(bytes);
                            ends += u32::from(ends_stream);
                        }
                        Part::Frame(head, payload) => others.push((head.kind, payload.to_vec())),
                        Part::Data { .. } => panic!("another stream"),
                    }
                }
            }
            assert_eq!((data.as_slice(), ends), (&b"abc"[..], 1), "in pieces of {piece}");
            assert_eq!(others, [(Kind::Headers, b"block".to_vec()), (Kind::Ping, vec![7; 8])]);
        }
    }

    #[test]
    fn invalid_frames_are_rejected() {
        let next = |wire: &[u8]| Frames::default().next(&mut { wire }, 100).map(drop);
        assert!(next(b"GET / HTTP/1.1\r\n").is_err());
        let mut wire = Vec::new();
        emit(Kind::Data, Flags::PADDED, StreamId::new(1), b"\x05abc", &mut wire);
        assert!(next(&wire).is_err());
    }
}
