//! Strict message framing by RFC 9112.
//!
//! hyper finds message boundaries too, but is more lenient. A stricter proxy in front would see other messages in the
//! same bytes. hyper accepts the following, and this module refuses it:
//!
//! - lines of heads and trailers that end with LF alone (§2.2);
//! - `Content-Length` with `Transfer-Encoding`, and more than one of either (§6.1, §6.3);
//! - any transfer coding before `chunked` (§6.1);
//! - spaces after a chunk size without extension, control characters in an extension, and sizes of more than 16 digits
//!   (§7.1).

use thiserror::Error;

/// Name that hyper sees instead of `Upgrade`. After an upgrade request hyper may close the connection before the last
/// response is sent.
pub(super) const HIDDEN_UPGRADE: &str = "upgrad_";

/// Follows the message boundaries of a connection.
#[derive(Debug)]
pub(super) struct FramingScanner {
    state: FramingState,
    /// Start of an incomplete line.
    partial_line: Vec<u8>,
    /// Facts about the head being read.
    head: HeadFraming,
    /// Current length of the head or the trailers.
    fields_len: usize,
    /// Maximum length of a head, of trailers or of any other line.
    fields_len_max: usize,
    messages: u64,
    chunks: u64,
}

/// Next element of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    Head,
    Body {
        left: u64,
    },
    ChunkSize,
    Chunk {
        left: u64,
    },
    /// The end of a chunk's line.
    ChunkEnd,
    Trailers,
    /// Inside a head or trailers that are too long: hyper refuses them, and nothing after them is read.
    Overlong,
}

#[derive(Debug, Default)]
struct HeadFraming {
    has_request_line: bool,
    is_http_11: bool,
    content_length: Option<u64>,
    is_chunked: bool,
}

/// Position in the messages of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPosition {
    pub(super) part: MessagePart,
    /// Index of the message on the connection, and of the chunk.
    pub(super) message: u64,
    pub(super) chunk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessagePart {
    /// Before the first byte of a message.
    BetweenMessages,
    Head,
    /// A body or a chunk is incomplete.
    Body,
    /// Between chunks.
    BetweenChunks,
}

/// Reasons why bytes are ambiguous.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum FramingError {
    #[error("a line does not end with CR and LF")]
    LineEnd,
    #[error("conflicting or repeated body length headers")]
    TwoLengths,
    #[error("Content-Length is not a number")]
    ContentLength,
    #[error("Transfer-Encoding is not just `chunked`, or the request is not HTTP/1.1")]
    TransferEncoding,
    #[error("a chunk does not start with its size")]
    ChunkSize,
    #[error("a chunk is longer than its size")]
    ChunkEnd,
}

/// Position and reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) why: FramingError,
    /// Whether it is in a body, whose head was valid.
    pub(super) in_body: bool,
    /// Number of valid bytes before it.
    pub(super) valid_len: usize,
}

impl FramingScanner {
    pub(super) fn new(head_len_max: usize) -> Self {
        Self {
            state: FramingState::Head,
            partial_line: Vec::new(),
            head: HeadFraming::default(),
            fields_len: 0,
            fields_len_max: head_len_max,
            messages: 0,
            chunks: 0,
        }
    }

    /// Follows the next bytes. Must not be called after a refusal.
    ///
    /// Renames [`Upgrade`](HIDDEN_UPGRADE) fields whose line arrives in one piece.
    pub(super) fn scan(&mut self, bytes: &mut [u8]) -> Result<(), Rejection> {
        let mut valid_len = 0;
        while valid_len < bytes.len() {
            let rest = &mut bytes[valid_len..];
            let len = match self.state {
                FramingState::Body { .. } | FramingState::Chunk { .. } => Ok(self.skip(rest.len())),
                FramingState::Overlong => Ok(rest.len()),
                FramingState::Head
                | FramingState::ChunkSize
                | FramingState::ChunkEnd
                | FramingState::Trailers => self.line(rest),
            };
            valid_len +=
                len.map_err(|why| Rejection { why, in_body: self.state != FramingState::Head, valid_len })?;
        }
        Ok(())
    }

    pub(super) fn position(&self) -> StreamPosition {
        let part = match self.state {
            // RFC 9112 §2.2: empty lines before a request do not belong to it.
            FramingState::Head
                if !self.head.has_request_line && matches!(*self.partial_line, [] | [b'\r']) =>
            {
                MessagePart::BetweenMessages
            }
            FramingState::Head | FramingState::Overlong => MessagePart::Head,
            FramingState::ChunkSize if self.partial_line.is_empty() => MessagePart::BetweenChunks,
            FramingState::Body { .. }
            | FramingState::ChunkSize
            | FramingState::Chunk { .. }
            | FramingState::ChunkEnd
            | FramingState::Trailers => MessagePart::Body,
        };
        StreamPosition { part, message: self.messages, chunk: self.chunks }
    }

    /// Skips the available bytes of a body or a chunk.
    fn skip(&mut self, available: usize) -> usize {
        let (FramingState::Body { left } | FramingState::Chunk { left }) = &mut self.state else { return 0 };
        let len = usize::try_from(*left).map_or(available, |left| left.min(available));
        *left -= len as u64;
        if *left == 0 {
            match self.state {
                FramingState::Chunk { .. } => self.state = FramingState::ChunkEnd,
                _ => self.end_message(),
            }
        }
        len
    }

    /// Reads a line, or the available part of it.
    fn line(&mut self, bytes: &mut [u8]) -> Result<usize, FramingError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let len = end.map_or(bytes.len(), |end| end + 1);
        if matches!(self.state, FramingState::Head | FramingState::Trailers) {
            self.fields_len += len;
            if self.fields_len > self.fields_len_max {
                self.state = FramingState::Overlong;
                self.partial_line = Vec::new();
                return Ok(len);
            }
        } else if self.partial_line.len() + len > self.fields_len_max {
            return Err(FramingError::ChunkSize);
        }
        if end.is_none() {
            self.partial_line.extend_from_slice(bytes);
            return Ok(len);
        }
        if self.partial_line.is_empty() {
            if self.state == FramingState::Head && value_of(bytes, b"upgrade:").is_some() {
                bytes[..HIDDEN_UPGRADE.len()].copy_from_slice(HIDDEN_UPGRADE.as_bytes());
            }
            self.complete_line(&bytes[..len])?;
        } else {
            let mut line = std::mem::take(&mut self.partial_line);
            line.extend_from_slice(&bytes[..len]);
            self.complete_line(&line)?;
        }
        Ok(len)
    }

    fn complete_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let line = line.strip_suffix(b"\r\n").ok_or(FramingError::LineEnd)?;
        match self.state {
            FramingState::Head if line.is_empty() && self.head.has_request_line => return self.end_head(),
            FramingState::Head if line.is_empty() => {}
            FramingState::Head if self.head.has_request_line => self.head.field(line)?,
            FramingState::Head => {
                self.head.has_request_line = true;
                self.head.is_http_11 = line.ends_with(b" HTTP/1.1");
            }
            FramingState::ChunkSize => {
                self.chunks += 1;
                self.state = match chunk_size(line).ok_or(FramingError::ChunkSize)? {
                    0 => FramingState::Trailers,
                    left => FramingState::Chunk { left },
                };
            }
            FramingState::ChunkEnd if line.is_empty() => self.state = FramingState::ChunkSize,
            FramingState::ChunkEnd => return Err(FramingError::ChunkEnd),
            FramingState::Trailers if line.is_empty() => self.end_message(),
            FramingState::Trailers
            | FramingState::Body { .. }
            | FramingState::Chunk { .. }
            | FramingState::Overlong => {}
        }
        Ok(())
    }

    fn end_head(&mut self) -> Result<(), FramingError> {
        let head = std::mem::take(&mut self.head);
        self.fields_len = 0;
        match (head.is_chunked, head.content_length) {
            (true, Some(_)) => return Err(FramingError::TwoLengths),
            (true, None) if head.is_http_11 => self.state = FramingState::ChunkSize,
            (true, None) => return Err(FramingError::TransferEncoding),
            (false, Some(0) | None) => self.end_message(),
            (false, Some(left)) => self.state = FramingState::Body { left },
        }
        Ok(())
    }

    fn end_message(&mut self) {
        self.state = FramingState::Head;
        self.fields_len = 0;
        self.messages += 1;
    }
}

impl HeadFraming {
    fn field(&mut self, line: &[u8]) -> Result<(), FramingError> {
        if let Some(value) = value_of(line, b"content-length:") {
            let length = number(value).ok_or(FramingError::ContentLength)?;
            if self.content_length.replace(length).is_some() {
                return Err(FramingError::TwoLengths);
            }
        } else if let Some(value) = value_of(line, b"transfer-encoding:") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingError::TransferEncoding);
            }
            if std::mem::replace(&mut self.is_chunked, true) {
                return Err(FramingError::TwoLengths);
            }
        }
        Ok(())
    }
}

/// Returns the value of `line` if it is the field `name`, which includes the colon.
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| trimmed(value))
}

/// Strips surrounding spaces and tabs: `OWS` (RFC 9110 §5.6.3).
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// `1*DIGIT` (RFC 9110 §8.6).
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// `chunk-size [ chunk-ext ]` (RFC 9112 §7.1). Extensions are ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (size, extension) = line.split_at(digits);
    let is_extension = extension.is_empty() || trimmed(extension).starts_with(b";");
    let is_text = extension.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    if size.len() > 16 || !is_extension || !is_text {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_LEN_MAX: usize = 200;

    /// Follows `bytes` at once and one by one, and checks the position at their end or the refusal.
    #[track_caller]
    fn check(bytes: &[u8], expected: Result<(MessagePart, u64), FramingError>) {
        let summary = |framing: &FramingScanner| (framing.position().part, framing.position().message);
        let mut framing = FramingScanner::new(HEAD_LEN_MAX);
        let at_once =
            framing.scan(&mut bytes.to_vec()).map(|()| summary(&framing)).map_err(|rejection| rejection.why);
        assert_eq!(at_once, expected, "{:?}", String::from_utf8_lossy(bytes));
        let mut framing = FramingScanner::new(HEAD_LEN_MAX);
        let one_by_one = bytes.iter().try_for_each(|byte| framing.scan(&mut [*byte]));
        let one_by_one = one_by_one.map(|()| summary(&framing)).map_err(|rejection| rejection.why);
        assert_eq!(one_by_one, expected, "{:?}, one by one", String::from_utf8_lossy(bytes));
    }

    fn check_head(fields: &str, expected: Result<(MessagePart, u64), FramingError>) {
        check(format!("POST / HTTP/1.1\r\n{fields}\r\n").as_bytes(), expected);
    }

    fn check_body(field: &str, body: &str, expected: Result<(MessagePart, u64), FramingError>) {
        check(format!("POST / HTTP/1.1\r\n{field}\r\n\r\n{body}").as_bytes(), expected);
    }

    fn check_chunked(body: &str, expected: Result<(MessagePart, u64), FramingError>) {
        check_body("Transfer-Encoding: chunked", body, expected);
    }

    #[test]
    fn head_ends_with_empty_line() {
        check(b"", Ok((MessagePart::BetweenMessages, 0)));
        check(b"\r\n\r", Ok((MessagePart::BetweenMessages, 0)));
        check(b"\r\nG", Ok((MessagePart::Head, 0)));
        check(b"GET / HTTP/1.1\r\n", Ok((MessagePart::Head, 0)));
        check(b"GET / HTTP/1.1\r\n\r\n", Ok((MessagePart::BetweenMessages, 1)));
        check(b"GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n\r\nG", Ok((MessagePart::Head, 2)));
        check(b"GET / HTTP/1.1\nA: b\r\n\r\n", Err(FramingError::LineEnd));
        check(b"GET / HTTP/1.1\r\nA: b\n\r\n", Err(FramingError::LineEnd));
        check(b"GET / HTTP/1.1\r\nA: b\r\n\n", Err(FramingError::LineEnd));
        check(b"\nGET / HTTP/1.1\r\nA: b\r\n\r\n", Err(FramingError::LineEnd));
    }

    #[test]
    fn nothing_follows_overlong_head() {
        let mut bytes = b"GET / HTTP/1.1\r\nA: ".to_vec();
        bytes.resize(HEAD_LEN_MAX + 1, b'a');
        check(&bytes, Ok((MessagePart::Head, 0)));
        bytes.extend_from_slice(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        check(&bytes, Ok((MessagePart::Head, 0)));
    }

    #[test]
    fn body_with_ambiguous_length_is_rejected() {
        check_body("Content-Length: 3", "ab", Ok((MessagePart::Body, 0)));
        check_body("content-LENGTH:3 \t", "abc", Ok((MessagePart::BetweenMessages, 1)));
        check_body("content-length: 3", "abcd", Ok((MessagePart::Head, 1)));
        check_head("Content-Length: 0\r\n", Ok((MessagePart::BetweenMessages, 1)));
        check_head("Content-Length: 18446744073709551615\r\n", Ok((MessagePart::Body, 0)));
        for wrong in ["18446744073709551616", "+3", "-3", "3, 3", "0x3", "3 3", "", "3a"] {
            check_head(&format!("Content-Length: {wrong}\r\n"), Err(FramingError::ContentLength));
        }
        check_head("Content-Length: 3\r\nContent-Length: 3\r\n", Err(FramingError::TwoLengths));
        check_head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Err(FramingError::TwoLengths));
        check_head("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", Err(FramingError::TwoLengths));
        let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
        check_head(twice, Err(FramingError::TwoLengths));
        for wrong in
            ["identity", "xchunked", "chunked, identity", "gzip, chunked", "chunked, chunked", ",chunked", ""]
        {
            check_head(&format!("Transfer-Encoding: {wrong}\r\n"), Err(FramingError::TransferEncoding));
        }
        check(
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Err(FramingError::TransferEncoding),
        );
    }

    #[test]
    fn malformed_chunks_are_rejected() {
        // An extension of this length is refused.
        check_chunked(&format!("1;{}\r\n", "a".repeat(HEAD_LEN_MAX)), Err(FramingError::ChunkSize));
        check_chunked("", Ok((MessagePart::BetweenChunks, 0)));
        check_chunked("3", Ok((MessagePart::Body, 0)));
        check_chunked("3\r\nabc\r\n", Ok((MessagePart::BetweenChunks, 0)));
        check_chunked("3\r\nabc\r\n0\r\n", Ok((MessagePart::Body, 0)));
        check_chunked("3;a=b\r\nabc\r\n0\r\n\r\n", Ok((MessagePart::BetweenMessages, 1)));
        check_chunked("3 ; a\r\nabc\r\n0\r\nTrailer: a\r\n\r\n", Ok((MessagePart::BetweenMessages, 1)));
        check_chunked("0000000000000003\r\nabc\r\n00\r\n\r\n", Ok((MessagePart::BetweenMessages, 1)));
        check_chunked("ffffffffffffffff\r\nabc\r\n0\r\n\r\n", Ok((MessagePart::Body, 0)));
        for wrong in
            ["", "-3", "+3", " 3", "3 ", "0x3", "3 3", "3\t", "g", "00000000000000003", "\0", ";a", "3;\0"]
        {
            check_chunked(&format!("{wrong}\r\nabc\r\n0\r\n"), Err(FramingError::ChunkSize));
        }
        check_chunked("3\nabc\r\n0\r\n", Err(FramingError::LineEnd));
        check_chunked("3;a\nabc\r\n0\r\n", Err(FramingError::LineEnd));
        check_chunked("3\r\nabcd\r\n0\r\n", Err(FramingError::ChunkEnd));
        check_chunked("3\r\nabc0\r\n", Err(FramingError::ChunkEnd));
        check_chunked("3\r\nabc\n0\r\n", Err(FramingError::LineEnd));
        check_chunked("0\r\nTrailer: a\n", Err(FramingError::LineEnd));
    }

    #[test]
    fn upgrade_field_is_hidden() {
        let mut bytes = b"GET / HTTP/1.1\r\nupgrade: a\r\nUpgrades: a\r\nUPGRADE:\r\n\r\n".to_vec();
        FramingScanner::new(HEAD_LEN_MAX).scan(&mut bytes).unwrap();
        let expected = "GET / HTTP/1.1\r\nupgrad_: a\r\nUpgrades: a\r\nupgrad_:\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn bytes_before_rejection_are_valid() {
        let first = b"GET / HTTP/1.1\r\n\r\n";
        let second = b"GET / HTTP/1.1\r\nA: b\n\r\n";
        let rejection = FramingScanner::new(HEAD_LEN_MAX).scan(&mut [&first[..], &second[..]].concat());
        let valid_len = first.len() + "GET / HTTP/1.1\r\n".len();
        assert_eq!(rejection, Err(Rejection { why: FramingError::LineEnd, in_body: false, valid_len }));
    }
}
