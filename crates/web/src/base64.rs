//! Base64 variants of these protocols: encoders pad where the protocol requires it, decoders accept both.

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// For metadata values and error details.
pub(crate) const UNPADDED: GeneralPurpose = lenient(&alphabet::STANDARD, false);

/// For messages in URLs.
pub(crate) const URL_SAFE: GeneralPurpose = lenient(&alphabet::URL_SAFE, false);

/// For gRPC-Web text bodies.
pub(crate) const PADDED: GeneralPurpose = lenient(&alphabet::STANDARD, true);

/// Ignores the unused bits of the last character, since other stacks may set them.
const fn lenient(alphabet: &Alphabet, padding: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(padding)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}
