//! What the head of a request says: [`Head`].

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue};
use thalweg_engine::{Encoding, EncodingSet};

use super::failure::Failure;
use super::target::{Takes, Target};
use crate::compression::{self, Compression};
use crate::content_type::application;
use crate::transcoding::{Binding, Framing, is_row};

/// What a request says of its body, and of the answer that it would like.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// As it was sent, where a message has it.
    pub(super) content_type: String,
    /// Whether it says that its values stand in a row, and not in an array.
    pub(super) is_row: bool,
    pub(super) encoding: Encoding,
    pub(super) answer: Compression,
    pub(super) framing: Framing,
    /// Whether there may be something behind the answer.
    pub(super) takes_trailers: bool,
}

const TYPES: &str = "application/json";
const STREAM_TYPES: &str = "application/json, application/x-ndjson";

impl Head {
    /// Reads it. Of a request without a body it does not matter what that would be.
    ///
    /// # Errors
    /// 415 for a body that is not what the method takes.
    pub(super) fn read(
        headers: &HeaderMap,
        target: &Target,
        binding: &Binding,
        has_body: bool,
    ) -> Result<Head, Failure> {
        let is_stream = binding.is_client_streaming();
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let subtype = application(content_type);
        if has_body
            && target.takes == Takes::Json
            && !subtype.is_some_and(|subtype| is_json(subtype, is_stream))
        {
            let accepted = if is_stream { STREAM_TYPES } else { TYPES };
            let told = String::from_utf8_lossy(content_type);
            let why = format!("content-type {told:?} is not supported; accepted is {accepted}");
            return Err(Failure::unsupported(&why, ACCEPT, accepted));
        }
        let accepts = target.options.accept_compressed;
        let named = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).filter(|_| has_body);
        let encoding = compression::named(CONTENT_ENCODING.as_str(), named, accepts).map_err(|status| {
            Failure::unsupported(status.message(), ACCEPT_ENCODING, &accepts.value().replace(',', ", "))
        })?;
        Ok(Head {
            content_type: match target.takes {
                Takes::Raw => String::from_utf8_lossy(content_type).into_owned(),
                Takes::Json | Takes::Nothing => String::new(),
            },
            is_row: subtype.is_some_and(is_row),
            encoding,
            answer: answer_compression(headers, target),
            framing: if binding.is_server_streaming() {
                Framing::by_accept(values(headers, &ACCEPT))
            } else {
                Framing::Lines
            },
            takes_trailers: values(headers, &TE).any(names_trailers),
        })
    }
}

fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes)
}

/// Who does not say what it reads, as curl does not, reads no compression.
fn answer_compression(headers: &HeaderMap, target: &Target) -> Compression {
    let (Some(offered), true) = (target.options.send_compressed, headers.contains_key(ACCEPT_ENCODING))
    else {
        return Compression::NONE;
    };
    let offers = EncodingSet::IDENTITY.with(offered);
    let encoding = compression::for_answer(values(headers, &ACCEPT_ENCODING), Encoding::Identity, offers);
    Compression { encoding, threshold: target.options.compression_threshold }
}

fn is_json(subtype: &str, is_stream: bool) -> bool {
    let suffix = subtype.rsplit('+').next().unwrap_or_default();
    suffix.eq_ignore_ascii_case("json") || is_stream && is_row(subtype)
}

fn names_trailers(te: &[u8]) -> bool {
    let mut items = te.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    items.any(|item| item.eq_ignore_ascii_case(b"trailers"))
}
