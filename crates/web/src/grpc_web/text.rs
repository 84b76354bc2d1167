//! Text bodies: Base64, in pieces that may each be padded.

use base64::Engine;
use thalweg_engine::{Code, Status};

use crate::base64::PADDED;

/// Appends `bytes` as a padded piece, so that a reader can decode it immediately.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(PADDED.encode(bytes).as_bytes());
}

/// Decodes Base64 incrementally. Padding may occur anywhere; a new group follows it.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Start of a group of four characters.
    group: [u8; 4],
    len: usize,
}

impl Decoder {
    /// Decodes all complete groups.
    pub(crate) fn decode(&mut self, text: &[u8]) -> Result<Vec<u8>, Status> {
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
        let mut rest = text;
        while !rest.is_empty() {
            let groups;
            if self.len == 0 && rest.len() >= 4 {
                let complete = rest.len() & !3;
                let padding = rest[..complete].iter().position(|byte| *byte == b'=');
                (groups, rest) = rest.split_at(padding.map_or(complete, |at| (at & !3) + 4));
            } else {
                let (front, tail) = rest.split_at(rest.len().min(4 - self.len));
                self.group[self.len..self.len + front.len()].copy_from_slice(front);
                self.len = (self.len + front.len()) & 3;
                rest = tail;
                groups = if self.len == 0 { &self.group[..] } else { &[] };
            }
            PADDED.decode_vec(groups, &mut bytes).map_err(|error| {
                Status::new(Code::Internal, format!("invalid base64 in the body: {error}"))
            })?;
        }
        Ok(bytes)
    }

    /// Returns whether no group is incomplete.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Ends the body. Returns INTERNAL if a group is incomplete.
    pub(crate) fn finish(&self) -> Result<(), Status> {
        match self.len {
            0 => Ok(()),
            _ => Err(Status::new(Code::Internal, "the body ended inside a Base64 quantum")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Seeded, failure};

    fn decode(text: &[u8], piece_len: usize) -> Result<Vec<u8>, Status> {
        let mut decoder = Decoder::default();
        let mut bytes = Vec::new();
        for piece in text.chunks(piece_len) {
            bytes.extend(decoder.decode(piece)?);
        }
        decoder.finish().map(|()| bytes)
    }

    #[test]
    fn padding_may_be_anywhere() {
        let check = |text: &str, expected: &str| {
            for piece_len in 1..=text.len().max(1) {
                assert_eq!(decode(text.as_bytes(), piece_len).unwrap(), expected.as_bytes(), "{text}");
            }
        };
        check("", "");
        check("YWJj", "abc");
        check("YQ==YWI=YWJjYQ==", "aababca");
    }

    #[test]
    fn invalid_base64_is_rejected() {
        for text in ["YQ=a", "Y===", "====", "Y Q=", "YWJ-", "YW\nJj"] {
            for piece_len in 1..=4 {
                let (code, why) = failure(decode(text.as_bytes(), piece_len));
                assert_eq!(code, Code::Internal);
                assert!(why.starts_with("invalid base64 in the body"), "{text}: {why}");
            }
        }
        for text in ["Y", "YQ", "YWJjYQ="] {
            let why = "the body ended inside a Base64 quantum".to_owned();
            assert_eq!(failure(decode(text.as_bytes(), 3)), (Code::Internal, why), "{text}");
        }
    }

    #[test]
    fn random_bodies_round_trip() {
        let mut seeded = Seeded(9);
        for _ in 0..2_000 {
            let (mut text, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..seeded.below(5) {
                let piece = seeded.bytes(0..10);
                encode(&piece, &mut text);
                expected.extend(piece);
            }
            let piece_len = 1 + seeded.below(12);
            assert_eq!(decode(&text, piece_len).unwrap(), expected);
            let noise = seeded.words(&["Y", "Q", "=", "/", "+", "_"], 0..20);
            let complete = decode(noise.as_bytes(), 100).map_err(|status| status.code());
            assert_eq!(complete, decode(noise.as_bytes(), piece_len).map_err(|status| status.code()));
        }
    }
}
