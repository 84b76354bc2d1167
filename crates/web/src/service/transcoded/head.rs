//! Request headers: [`TranscodedHead`].

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use thalweg_engine::raw::RawHead;
use thalweg_engine::{Encoding, EncodingSet};

use super::failure::Failure;
use super::target::{BodyFormat, Target};
use crate::compression::{self, Compression};
use crate::content_type::application;
use crate::transcoding::{Binding, Framing, is_json_lines};

/// Headers about the request body and the desired response.
#[derive(Clone, Debug)]
pub(super) struct TranscodedHead {
    /// The raw value, if a message includes it.
    pub(super) content_type: String,
    /// Whether the values are JSON lines and not an array.
    pub(super) is_json_lines: bool,
    pub(super) encoding: Encoding,
    pub(super) response_compression: Compression,
    pub(super) framing: Framing,
    /// Whether the client accepts trailers.
    pub(super) accepts_trailers: bool,
}

const TYPES: &str = "application/json";
const STREAM_TYPES: &str = "application/json, application/x-ndjson";

impl TranscodedHead {
    /// Reads the headers. Without a body the content type matters for POST only: a form of any page can send such a
    /// POST without a preflight request, and CORS cannot prevent that. Other methods with side effects are never sent
    /// so.
    ///
    /// # Errors
    /// 415 for an unsupported body, and for such a POST unless `allows_simple_posts`.
    pub(super) fn read(
        head: &RawHead<'_>,
        target: &Target,
        binding: &Binding,
        has_body: bool,
        allows_simple_posts: bool,
    ) -> Result<TranscodedHead, Failure> {
        let headers = head.headers;
        let is_stream = binding.is_client_streaming();
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let subtype = application(content_type);
        let must_preflight = *head.method == Method::POST && !allows_simple_posts;
        let is_accepted = match target.body_format {
            BodyFormat::Raw => !must_preflight || forces_preflight(content_type),
            BodyFormat::Json => !(has_body || must_preflight) || is_json(subtype, is_stream),
            BodyFormat::Empty => !must_preflight || is_json(subtype, is_stream),
        };
        if !is_accepted {
            return Err(unsupported(content_type, target.body_format, is_stream));
        }
        let accepts = target.options.accept_compressed;
        let named = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes).filter(|_| has_body);
        let encoding =
            compression::parse_encoding(CONTENT_ENCODING.as_str(), named, accepts).map_err(|status| {
                Failure::unsupported(status.message(), ACCEPT_ENCODING, &accepts.value().replace(',', ", "))
            })?;
        Ok(TranscodedHead {
            content_type: match target.body_format {
                BodyFormat::Raw => String::from_utf8_lossy(content_type).into_owned(),
                BodyFormat::Json | BodyFormat::Empty => String::new(),
            },
            is_json_lines: subtype.is_some_and(is_json_lines),
            encoding,
            response_compression: negotiate_compression(headers, target),
            framing: if binding.is_server_streaming() {
                Framing::by_accept(values(headers, &ACCEPT))
            } else {
                Framing::Lines
            },
            accepts_trailers: values(headers, &TE).any(names_trailers),
        })
    }
}

fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes)
}

/// Clients without `accept-encoding`, such as curl, get no compression.
fn negotiate_compression(headers: &HeaderMap, target: &Target) -> Compression {
    let (Some(offered), true) = (target.options.send_compressed, headers.contains_key(ACCEPT_ENCODING))
    else {
        return Compression::NONE;
    };
    let offers = EncodingSet::IDENTITY.with(offered);
    let encoding = compression::negotiate(values(headers, &ACCEPT_ENCODING), Encoding::Identity, offers);
    Compression { encoding, threshold: target.options.compression_threshold }
}

fn unsupported(content_type: &[u8], body_format: BodyFormat, is_stream: bool) -> Failure {
    let accepted = match body_format {
        BodyFormat::Raw => "application/octet-stream",
        BodyFormat::Json | BodyFormat::Empty if is_stream => STREAM_TYPES,
        BodyFormat::Json | BodyFormat::Empty => TYPES,
    };
    let sent = String::from_utf8_lossy(content_type);
    let why = if body_format == BodyFormat::Raw {
        format!(
            "content-type {sent:?} is not supported for POST, because HTML forms of other sites can send it"
        )
    } else {
        format!("content-type {sent:?} is not supported; accepted is {accepted}")
    };
    Failure::unsupported(&why, ACCEPT, accepted)
}

fn is_json(subtype: Option<&str>, is_stream: bool) -> bool {
    subtype.is_some_and(|subtype| {
        let suffix = subtype.rsplit('+').next().unwrap_or_default();
        suffix.eq_ignore_ascii_case("json") || is_stream && is_json_lines(subtype)
    })
}

/// Returns whether browsers send a preflight request for this content type. They do not for those of forms, nor without
/// one (Fetch standard, "CORS-safelisted request-header").
fn forces_preflight(content_type: &[u8]) -> bool {
    const FORM_TYPES: [&[u8]; 3] =
        [b"application/x-www-form-urlencoded", b"multipart/form-data", b"text/plain"];
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    !essence.is_empty() && !FORM_TYPES.iter().any(|form_type| essence.eq_ignore_ascii_case(form_type))
}

fn names_trailers(te: &[u8]) -> bool {
    let mut items = te.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    items.any(|item| item.eq_ignore_ascii_case(b"trailers"))
}
