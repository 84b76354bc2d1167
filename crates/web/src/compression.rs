//! Compression of bodies and messages, and its negotiation.

use bytes::Bytes;
use thalweg_engine::{COMPRESSION_THRESHOLD, Code, Encoding, EncodingSet, Status, compact};

use crate::content_type::list_items;

/// Compression of sent messages.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Compression {
    /// Encoding.
    pub encoding: Encoding,
    /// Minimum size of compressed messages, in bytes. Smaller messages are sent uncompressed, and so are those that do
    /// not shrink. With 0 every message is compressed.
    pub threshold: usize,
}

impl Compression {
    /// No compression.
    pub const NONE: Compression = Compression { encoding: Encoding::Identity, threshold: usize::MAX };

    /// Compresses messages of at least [`COMPRESSION_THRESHOLD`] bytes.
    pub fn with(encoding: Encoding) -> Compression {
        Compression { encoding, threshold: COMPRESSION_THRESHOLD }
    }

    /// Sets [`threshold`](field@Self::threshold).
    pub fn threshold(mut self, threshold: usize) -> Self {
        self.threshold = threshold;
        self
    }

    /// Returns the compressed message, or `None` if `message` should be sent uncompressed.
    pub fn compress(&self, message: &[u8]) -> Option<Vec<u8>> {
        if !self.encoding.compresses() || message.len() < self.threshold {
            return None;
        }
        let mut compressed = Vec::new();
        self.encoding.compress(message, &mut compressed);
        (compressed.len() < message.len() || self.threshold == 0).then_some(compressed)
    }
}

/// Decompresses a received message of at most `size_max` bytes. An empty message is valid in every encoding.
///
/// # Errors
/// RESOURCE_EXHAUSTED if the message is larger, INTERNAL if it is not valid in this encoding.
pub fn decompress(encoding: Encoding, message: Bytes, size_max: usize) -> Result<Bytes, Status> {
    if !encoding.compresses() || message.is_empty() {
        return match message.len() {
            size if size > size_max => Err(too_large(size, size_max)),
            _ => Ok(message),
        };
    }
    Ok(compact(encoding.decompress(&message, size_max)?))
}

/// The option that limits received messages, for errors.
pub(crate) const SIZE_OPTION: &str = "see the receiver's max_decoding_message_size";

pub(crate) fn too_large(size: usize, size_max: usize) -> Status {
    let why = format!("received message larger than max ({size} vs. {size_max}): {SIZE_OPTION}");
    Status::new(Code::ResourceExhausted, why)
}

/// Returns the accepted encoding that a header names. A missing or empty header means identity.
///
/// # Errors
/// UNIMPLEMENTED, listing the accepted encodings.
pub(crate) fn parse_encoding(
    header: &str,
    value: Option<&[u8]>,
    accepts: EncodingSet,
) -> Result<Encoding, Status> {
    let Some(name) = value.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) else {
        return Ok(Encoding::Identity);
    };
    from_name(name).filter(|encoding| accepts.contains(*encoding)).ok_or_else(|| {
        let why = format!(
            "{header} {:?} is not supported; accepted are {}",
            String::from_utf8_lossy(name),
            accepts.value()
        );
        Status::new(Code::Unimplemented, why)
    })
}

/// Chooses the response encoding that the client prefers among those the server `offers`. Without a list, it is the
/// encoding of the request, if offered.
///
/// The highest quality wins (RFC 9110 §12.5.3), and the first among equals. `*` stands for all encodings not named.
pub(crate) fn negotiate<'a>(
    accept: impl Iterator<Item = &'a [u8]>,
    request: Encoding,
    offers: EncodingSet,
) -> Encoding {
    let mut accept = accept.peekable();
    if accept.peek().is_none() {
        return if offers.contains(request) { request } else { Encoding::Identity };
    }
    let items: Vec<(&str, u16)> = list_items(accept).collect();
    let mut best: Option<(u16, Encoding)> = None;
    let mut offer = |encoding: Encoding, quality: u16| {
        if quality > 0 && offers.contains(encoding) && best.is_none_or(|(best, _)| best < quality) {
            best = Some((quality, encoding));
        }
    };
    for (name, quality) in &items {
        if let Some(encoding) = from_name(name.as_bytes()) {
            offer(encoding, *quality);
        } else if *name == "*" {
            let is_named = |encoding: &Encoding| {
                items.iter().any(|(name, _)| from_name(name.as_bytes()) == Some(*encoding))
            };
            let others = Encoding::ALL.iter().filter(|encoding| encoding.compresses() && !is_named(encoding));
            others.for_each(|encoding| offer(*encoding, *quality));
        }
    }
    best.map_or(Encoding::Identity, |(_, encoding)| encoding)
}

/// Chooses the response encoding from an unordered list, as gRPC clients send it, unlike Connect's.
pub(crate) fn first_common(offers: EncodingSet, accepts: EncodingSet) -> Encoding {
    let both = |encoding: &Encoding| offers.contains(*encoding) && accepts.contains(*encoding);
    let compressing = Encoding::ALL.iter().copied().filter(|encoding| encoding.compresses());
    compressing.into_iter().find(both).unwrap_or_default()
}

/// Content codings are case-insensitive (RFC 9110 §8.4.1).
fn from_name(name: &[u8]) -> Option<Encoding> {
    Encoding::ALL.iter().copied().find(|encoding| encoding.name().as_bytes().eq_ignore_ascii_case(name))
}

/// The list of encodings that a client accepts. Identity alone is listed, or the server would use the request's.
pub(crate) fn accept_value(accepts: EncodingSet) -> String {
    let compressing =
        Encoding::ALL.iter().filter(|encoding| encoding.compresses() && accepts.contains(**encoding));
    let names: Vec<&str> = compressing.map(|encoding| encoding.name()).collect();
    if names.is_empty() { Encoding::Identity.name().to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::failure;

    #[test]
    fn message_is_sent_uncompressed_unless_compression_shrinks_it() {
        let gzip = Compression { encoding: Encoding::Gzip, threshold: 100 };
        let long = vec![b'a'; 100];
        let compressed = gzip.compress(&long).unwrap();
        assert!(compressed.len() < 50);
        assert_eq!(decompress(Encoding::Gzip, compressed.into(), 100).unwrap(), long);
        assert_eq!(gzip.compress(&long[..99]), None);
        assert_eq!(gzip.compress(&(0..=255).collect::<Vec<u8>>()), None);
        assert!(Compression { encoding: Encoding::Gzip, threshold: 0 }.compress(b"").is_some());
        assert_eq!(Compression::NONE.compress(&long), None);
        assert_eq!(Compression::with(Encoding::Gzip).threshold, COMPRESSION_THRESHOLD);
    }

    #[test]
    fn decompressed_size_is_limited() {
        let check = |encoding: Encoding, message: &[u8], size_max, expected: Result<&[u8], Code>| {
            let outcome = decompress(encoding, Bytes::copy_from_slice(message), size_max);
            assert_eq!(outcome.as_deref().map_err(Status::code), expected, "{encoding:?}");
        };
        let mut bomb = Vec::new();
        let zeros = vec![0; 1 << 20];
        Encoding::Gzip.compress(&zeros, &mut bomb);
        check(Encoding::Identity, b"abc", 3, Ok(b"abc"));
        check(Encoding::Identity, b"abcd", 3, Err(Code::ResourceExhausted));
        check(Encoding::Gzip, b"", 3, Ok(b""));
        check(Encoding::Gzip, b"abc", 3, Err(Code::Internal));
        check(Encoding::Gzip, &bomb, 1000, Err(Code::ResourceExhausted));
        check(Encoding::Gzip, &bomb, 1 << 20, Ok(&zeros));
    }

    #[test]
    fn encoding_header_is_parsed_or_rejected() {
        let gzip = EncodingSet::IDENTITY.with(Encoding::Gzip);
        let check = |value: Option<&str>, expected: Result<Encoding, &str>| {
            let outcome = parse_encoding("content-encoding", value.map(str::as_bytes), gzip);
            assert_eq!(outcome.as_ref().map_err(Status::message).copied(), expected);
        };
        check(None, Ok(Encoding::Identity));
        check(Some(""), Ok(Encoding::Identity));
        check(Some("identity"), Ok(Encoding::Identity));
        check(Some(" GZIP "), Ok(Encoding::Gzip));
        check(Some("foo"), Err("content-encoding \"foo\" is not supported; accepted are identity,gzip"));
        check(
            Some("deflate"),
            Err("content-encoding \"deflate\" is not supported; accepted are identity,gzip"),
        );
        assert_eq!(failure(parse_encoding("x", Some(b"foo"), gzip)).0, Code::Unimplemented);
    }

    #[test]
    fn response_encoding_is_negotiated_by_quality() {
        let check = |accept: &[&str], request, offers, expected| {
            let accept = accept.iter().map(|value| value.as_bytes());
            assert_eq!(negotiate(accept, request, offers), expected);
        };
        let (all, none) = (EncodingSet::ALL, EncodingSet::IDENTITY);
        check(&[], Encoding::Identity, all, Encoding::Identity);
        check(&[], Encoding::Gzip, all, Encoding::Gzip);
        check(&[], Encoding::Gzip, none, Encoding::Identity);
        check(&["identity"], Encoding::Gzip, all, Encoding::Identity);
        check(&["deflate,gzip"], Encoding::Identity, all, Encoding::Deflate);
        check(&["foo, Gzip, deflate"], Encoding::Identity, all, Encoding::Gzip);
        check(&["foo", "gzip"], Encoding::Identity, all, Encoding::Gzip);
        check(&["gzip;q=0, deflate;q=0.5"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip; q=0.000"], Encoding::Gzip, all, Encoding::Identity);
        check(&["gzip;q=0.5, deflate;q=0.8"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip;q=0.5, identity;q=0.8"], Encoding::Identity, all, Encoding::Identity);
        // The first among equals wins; thousandths count.
        check(&["deflate;q=0.5, gzip;q=0.5"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip;q=0.001, deflate;q=0.002"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip;q=0.999, deflate"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip;Q=0, deflate;q=0.1"], Encoding::Identity, all, Encoding::Deflate);
        check(&["gzip;a=b;q=0.5, deflate ; q=0.6"], Encoding::Identity, all, Encoding::Deflate);
        // Invalid qualities count as 1.
        for quality in ["", "x", "7", "-1", "NaN", "1.0"] {
            for (other, best) in [("gzip;q=0.9", Encoding::Deflate), ("gzip", Encoding::Gzip)] {
                check(&[&format!("{other}, deflate;q={quality}")], Encoding::Identity, all, best);
            }
        }
        check(&["*"], Encoding::Identity, EncodingSet::IDENTITY.with(Encoding::Deflate), Encoding::Deflate);
        check(
            &["*, gzip;q=0"],
            Encoding::Identity,
            EncodingSet::IDENTITY.with(Encoding::Gzip),
            Encoding::Identity,
        );
        check(&["*;q=0, gzip"], Encoding::Identity, all, Encoding::Gzip);
        check(&["*;q=0.9, gzip;q=0.5"], Encoding::Identity, EncodingSet::ALL, Encoding::Deflate);
        #[cfg(feature = "brotli")]
        check(
            &["gzip, deflate, br;q=1.0, zstd;q=0"],
            Encoding::Identity,
            all.with(Encoding::Brotli),
            Encoding::Gzip,
        );
        #[cfg(feature = "brotli")]
        check(&["gzip;q=0.9, br"], Encoding::Identity, all, Encoding::Brotli);
        check(&["gzip"], Encoding::Identity, none, Encoding::Identity);
        check(&["foo"], Encoding::Gzip, all, Encoding::Identity);
    }

    #[test]
    fn accept_value_lists_compressing_encodings() {
        assert_eq!(accept_value(EncodingSet::IDENTITY), "identity");
        let both = EncodingSet::IDENTITY.with(Encoding::Deflate).with(Encoding::Gzip);
        assert_eq!(accept_value(both), "gzip, deflate");
    }
}
