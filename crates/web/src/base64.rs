//! Base64 as these protocols have it: written without padding where they say so, read with or without.

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Values of metadata and details of errors.
pub(crate) const UNPADDED: GeneralPurpose = lenient(&alphabet::STANDARD, false);

/// Messages in a URL.
pub(crate) const URL_SAFE: GeneralPurpose = lenient(&alphabet::URL_SAFE, false);

/// Bodies of gRPC-Web in text.
pub(crate) const PADDED: GeneralPurpose = lenient(&alphabet::STANDARD, true);

/// What other stacks leave in the unused bits of the last character is of no account.
const fn lenient(alphabet: &Alphabet, padding: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(padding)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}
