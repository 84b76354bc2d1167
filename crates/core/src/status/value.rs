//! [`Status`]: code, message, details and metadata.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::metadata::{BASE64, GRPC_CONTENT_TYPE, MetadataMap};
use crate::{Code, percent};

/// The name of the field with the code.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The name of the field with the message.
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The name of the field with the details.
pub const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The outcome of a call that failed: a code, a message for people, details for programs, and metadata.
///
/// It is one pointer in size.
///
/// ```
/// use thalweg_core::{Code, Status};
///
/// let status = Status::not_found("no order 17");
/// assert_eq!((status.code(), status.message()), (Code::NotFound, "no order 17"));
/// ```
pub struct Status(pub(super) Box<StatusParts>);

#[derive(Clone)]
pub(super) struct StatusParts {
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
    pub(super) details: Bytes,
    pub(super) metadata: MetadataMap,
    pub(super) source: Option<Arc<dyn Error + Send + Sync + 'static>>,
    /// See [`Status::is_local`].
    pub(super) is_local: bool,
    /// The metadata of the response headers, with which `metadata` begins.
    pub(super) headers: Option<Box<HeaderMap>>,
}

impl Status {
    /// Creates a status without details or metadata.
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_details_and_metadata(code, message, Bytes::new(), MetadataMap::new())
    }

    /// Creates a status with [`Code::Ok`]: success.
    pub fn ok(message: impl Into<String>) -> Self {
        Self::new(Code::Ok, message)
    }

    /// Creates a status with [`Code::Cancelled`]: the call was cancelled, usually by the caller.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(Code::Cancelled, message)
    }

    /// Creates a status with [`Code::Unknown`]: an error without a known code.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(Code::Unknown, message)
    }

    /// Creates a status with [`Code::InvalidArgument`]: the request is invalid in any state of the server.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Creates a status with [`Code::DeadlineExceeded`]: the deadline passed before the call ended.
    pub fn deadline_exceeded(message: impl Into<String>) -> Self {
        Self::new(Code::DeadlineExceeded, message)
    }

    /// Creates a status with [`Code::NotFound`]: a requested entity does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// Creates a status with [`Code::AlreadyExists`]: the entity to be created exists.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(Code::AlreadyExists, message)
    }

    /// Creates a status with [`Code::PermissionDenied`]: the caller is known and may not make this call.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(Code::PermissionDenied, message)
    }

    /// Creates a status with [`Code::ResourceExhausted`]: a quota, limit or memory is used up.
    pub fn resource_exhausted(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, message)
    }

    /// Creates a status with [`Code::FailedPrecondition`]: the system is not in the state that the call needs.
    pub fn failed_precondition(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, message)
    }

    /// Creates a status with [`Code::Aborted`]: the call lost against a concurrent one.
    pub fn aborted(message: impl Into<String>) -> Self {
        Self::new(Code::Aborted, message)
    }

    /// Creates a status with [`Code::OutOfRange`]: the request goes beyond the valid range in the present state.
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(Code::OutOfRange, message)
    }

    /// Creates a status with [`Code::Unimplemented`]: the method does not exist or is not enabled.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// Creates a status with [`Code::Internal`]: an invariant is broken, or a peer violated the protocol.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Creates a status with [`Code::Unavailable`]: the service cannot be reached now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    /// Creates a status with [`Code::DataLoss`]: data is lost or corrupted.
    pub fn data_loss(message: impl Into<String>) -> Self {
        Self::new(Code::DataLoss, message)
    }

    /// Creates a status with [`Code::Unauthenticated`]: the caller has no valid credentials.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(Code::Unauthenticated, message)
    }

    /// Creates a status with details for programs, usually a `google.rpc.Status`.
    pub fn with_details(code: Code, message: impl Into<String>, details: Bytes) -> Self {
        Self::with_details_and_metadata(code, message, details, MetadataMap::new())
    }

    /// Creates a status with metadata, which a server sends in the trailers.
    pub fn with_metadata(code: Code, message: impl Into<String>, metadata: MetadataMap) -> Self {
        Self::with_details_and_metadata(code, message, Bytes::new(), metadata)
    }

    /// Creates a status with details and metadata.
    #[cold]
    pub fn with_details_and_metadata(
        code: Code,
        message: impl Into<String>,
        details: Bytes,
        metadata: MetadataMap,
    ) -> Self {
        let message = Cow::Owned(message.into());
        let (source, headers) = (None, None);
        Self(Box::new(StatusParts { code, message, details, metadata, source, is_local: false, headers }))
    }

    /// Returns the code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the details for programs.
    pub fn details(&self) -> &[u8] {
        &self.0.details
    }

    /// Returns the metadata. A client finds that of the response's headers and trailers here.
    pub fn metadata(&self) -> &MetadataMap {
        &self.0.metadata
    }

    /// Returns the metadata.
    pub fn metadata_mut(&mut self) -> &mut MetadataMap {
        &mut self.0.metadata
    }

    /// Sets the error that caused the failure. It is not sent.
    pub fn set_source(&mut self, source: Arc<dyn Error + Send + Sync + 'static>) -> &mut Self {
        self.0.source = Some(source);
        self
    }

    /// Returns an HTTP response with this status in its headers (Trailers-Only).
    ///
    /// Layers find the status itself among the response's extensions.
    pub fn into_http<B: Default>(self) -> http::Response<B> {
        let mut response = http::Response::new(B::default());
        response.headers_mut().insert(http::header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
        self.write_fields(response.headers_mut());
        response.extensions_mut().insert(self);
        response
    }

    /// Reads the status of headers or trailers. Returns nothing without `grpc-status`.
    ///
    /// Other fields become its metadata. A message is decoded as far as possible; details that are not Base64 are left
    /// out.
    pub fn from_header_map(headers: &HeaderMap) -> Option<Self> {
        Self::read_fields(headers)
    }

    /// Adds the status and its metadata to headers or trailers.
    ///
    /// # Errors
    ///
    /// None: the signature is tonic's.
    pub fn add_header(&self, headers: &mut HeaderMap) -> Result<(), Self> {
        self.write_fields(headers);
        Ok(())
    }
}

impl Clone for Status {
    #[cold]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatusParts { code, message, details, metadata, source, .. } = &*self.0;
        let mut parts = f.debug_struct("Status");
        parts.field("code", code);
        if !message.is_empty() {
            parts.field("message", message);
        }
        if !details.is_empty() {
            parts.field("details", details);
        }
        if !metadata.is_empty() {
            parts.field("metadata", metadata);
        }
        parts.field("source", source).finish()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatusParts { code, message, source, .. } = &*self.0;
        write!(f, "code: '{code}'")?;
        if !message.is_empty() {
            write!(f, ", message: {message:?}")?;
        }
        if let Some(source) = source {
            write!(f, ", source: {source:?}")?;
        }
        Ok(())
    }
}

impl Error for Status {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl Status {
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_STATUS: HeaderName = GRPC_STATUS;
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_MESSAGE: HeaderName = GRPC_MESSAGE;
    /// The same name in tonic.
    #[doc(hidden)]
    pub const GRPC_STATUS_DETAILS: HeaderName = GRPC_STATUS_DETAILS;

    fn read_fields(headers: &HeaderMap) -> Option<Self> {
        let code = Code::from_bytes(headers.get(GRPC_STATUS)?.as_bytes());
        let value = |name| headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
        let message = percent::decode(value(GRPC_MESSAGE)).into_owned();
        let details = BASE64.decode(value(GRPC_STATUS_DETAILS)).unwrap_or_default();
        let mut metadata = headers.clone();
        for name in [GRPC_STATUS, GRPC_MESSAGE, GRPC_STATUS_DETAILS] {
            metadata.remove(name);
        }
        let metadata = MetadataMap::from_headers(metadata);
        Some(Self::with_details_and_metadata(code, message, details.into(), metadata))
    }

    pub(crate) fn write_fields(&self, headers: &mut HeaderMap) {
        headers.extend(self.metadata().clone().into_sanitized_headers());
        headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(self.code().number())));
        if !self.message().is_empty() {
            headers.insert(GRPC_MESSAGE, value(percent::encode(self.message()).into_owned()));
        }
        if !self.details().is_empty() {
            headers.insert(GRPC_STATUS_DETAILS, value(BASE64.encode(self.details()).into()));
        }
    }
}

fn value(visible: Vec<u8>) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(visible)).expect("percent coding and Base64 are visible ASCII")
}
