//! Encoding of bodies: messages and trailers, binary or text.

use http::HeaderMap;
use thalweg_engine::Status;

use super::{text, trailers};
use crate::compression::Compression;
use crate::envelope;

/// Flag of the envelope with the trailers.
pub(super) const TRAILERS: u8 = 0x80;

/// Appends a message in its envelope, as Base64 if `is_text`.
pub(crate) fn put_message(
    message: &[u8],
    compression: &Compression,
    is_text: bool,
    out: &mut Vec<u8>,
) -> Result<(), Status> {
    if !is_text {
        return envelope::put_message(message, compression, out);
    }
    let mut binary = Vec::new();
    envelope::put_message(message, compression, &mut binary)?;
    text::encode(&binary, out);
    Ok(())
}

/// Appends the trailers of a call's outcome, as Base64 if `is_text`.
pub(super) fn put_trailers(outcome: Result<&HeaderMap, &Status>, is_text: bool, out: &mut Vec<u8>) {
    let mut binary = Vec::new();
    // They are much shorter than the limit of the length prefix.
    let _ = envelope::put(TRAILERS, &trailers::write(outcome), &mut binary);
    if is_text {
        text::encode(&binary, out);
    } else {
        out.append(&mut binary);
    }
}
