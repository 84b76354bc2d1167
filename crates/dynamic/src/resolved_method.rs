//! Looks up methods by their descriptors.

use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, ParseOptions};
use thalweg_protobuf_text::declarations::DeclarationsError;
use thalweg_protobuf_text::text_format;

use crate::catalogue::Catalogue;
use crate::method_name::MethodName;
use crate::reflection::ReflectionError;
use crate::suggestions::suggest;
use crate::texts::MessageFormat;

/// A method that can be called.
#[derive(Clone, Debug)]
pub struct ResolvedMethod {
    /// Types of requests and responses.
    pub schema: Schema,
    /// `/package.Service/Method`.
    pub path: String,
    /// Full name of the request type.
    pub request_type: String,
    /// Full name of the response type.
    pub response_type: String,
    /// Whether the method takes a stream of requests.
    pub is_client_streaming: bool,
    /// Whether the method returns a stream of responses.
    pub is_server_streaming: bool,
}

/// Error of looking up a method or symbol.
#[derive(Debug, thiserror::Error)]
pub enum LookUpError {
    /// Reflection failed.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
    /// Reflection lists the service, but does not describe it.
    #[error("reflection lists the service `{0}` but does not describe it; use --proto or --protoset")]
    NotDescribed(String),
    /// There is no such service, method or symbol.
    #[error("{0}")]
    Unknown(String),
    /// The descriptors are invalid.
    #[error(transparent)]
    Declarations(#[from] DeclarationsError),
}

impl ResolvedMethod {
    /// Returns names and values for templates, named as in ghz.
    pub fn constants(&self) -> Vec<(&'static str, String)> {
        let last = |name: &str, separator| name.rsplit(separator).next().unwrap_or_default().to_owned();
        // The path is `/package.Service/Method`.
        let full_name = self.path.trim_start_matches('/').replace('/', ".");
        let service = full_name.rsplit_once('.').map_or("", |(service, _)| service);
        vec![
            ("MethodName", last(&full_name, '.')),
            ("ServiceName", last(service, '.')),
            ("FullyQualifiedName", full_name.clone()),
            ("InputName", last(&self.request_type, '.')),
            ("OutputName", last(&self.response_type, '.')),
            ("IsClientStreaming", self.is_client_streaming.to_string()),
            ("IsServerStreaming", self.is_server_streaming.to_string()),
        ]
    }

    /// Returns whether the JSON of a request may be an array.
    pub fn takes_arrays(&self) -> bool {
        matches!(&*self.request_type, "google.protobuf.ListValue" | "google.protobuf.Value")
    }

    /// Encodes a request. Binary requests are not validated.
    ///
    /// # Errors
    ///
    /// Returns an error if the request does not match the type or lacks a field that proto2 requires.
    pub fn encoded(
        &self,
        format: MessageFormat,
        written: &[u8],
        ignore_unknown: bool,
    ) -> Result<Vec<u8>, String> {
        let message = self.schema.message(&self.request_type).ok_or("the schema lacks the request type")?;
        let options = ParseOptions::default().ignore_unknown(ignore_unknown);
        let mut wire = Vec::with_capacity(written.len());
        match format {
            MessageFormat::Json => json::parse(message, written, &options, &mut wire),
            MessageFormat::Text => text_format::parse(message, written, &options, &mut wire),
            MessageFormat::Binary => return Ok(written.to_vec()),
        }
        .map_err(|error| error.to_string())?;
        Ok(wire)
    }

    /// Encodes an empty message.
    ///
    /// # Errors
    ///
    /// Returns an error if the type requires a field.
    pub fn empty(&self) -> Result<Vec<u8>, String> {
        self.encoded(MessageFormat::Json, b"{}", false)
    }
}

/// Looks up a method.
///
/// # Errors
///
/// Returns an error if the method is unknown, or if reflection fails.
pub async fn look_up(catalogue: &mut Catalogue, name: &MethodName) -> Result<ResolvedMethod, LookUpError> {
    let schema = catalogue.schema_of(name.service()).await?;
    let service = schema.as_ref().and_then(|schema| schema.service(name.service()));
    let Some((schema, service)) = schema.as_ref().zip(service) else {
        return Err(unknown_service(catalogue, name.service()).await);
    };
    let Some(method) = service.method(name.method()) else {
        let suggestion = suggest(service.methods().map(thalweg_protobuf::Method::name), name.method());
        let (service, method) = (name.service(), name.method());
        return Err(LookUpError::Unknown(format!("{service} has no method `{method}`{suggestion}")));
    };
    Ok(ResolvedMethod {
        path: method.path(),
        request_type: method.input().full_name().to_owned(),
        response_type: method.output().full_name().to_owned(),
        is_client_streaming: method.is_client_streaming(),
        is_server_streaming: method.is_server_streaming(),
        schema: schema.clone(),
    })
}

/// Returns the error for an unknown service, with similar names.
pub(crate) async fn unknown_service(catalogue: &mut Catalogue, name: &str) -> LookUpError {
    let known = catalogue.services().await.unwrap_or_default();
    if known.iter().any(|known| known == name) {
        return LookUpError::NotDescribed(name.to_owned());
    }
    let suggestion = suggest(known.iter().map(String::as_str), name);
    LookUpError::Unknown(format!("unknown service `{name}`{suggestion}{}", files_hint(catalogue)))
}

/// Returns a hint at other files, if descriptors come from files.
pub(crate) fn files_hint(catalogue: &Catalogue) -> &'static str {
    match catalogue {
        Catalogue::Files { .. } => "; another --proto or --protoset may declare it",
        Catalogue::Server(_) => "",
    }
}
