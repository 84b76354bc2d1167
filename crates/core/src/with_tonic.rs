//! Conversions from and to tonic's types, for programs that use both.

use bytes::Bytes;

use crate::metadata::MetadataMap;
use crate::{Code, Request, Response, Status};

impl From<tonic::Code> for Code {
    fn from(code: tonic::Code) -> Self {
        Self::from_i32(code.into())
    }
}

impl From<Code> for tonic::Code {
    fn from(code: Code) -> Self {
        Self::from_i32(code.into())
    }
}

/// Sources stay behind: tonic does not return them to be shared.
impl From<tonic::Status> for Status {
    #[cold]
    fn from(status: tonic::Status) -> Self {
        let details = Bytes::copy_from_slice(status.details());
        let metadata = status.metadata().clone().into();
        Self::with_details_and_metadata(status.code().into(), status.message(), details, metadata)
    }
}

/// Sources stay behind.
impl From<Status> for tonic::Status {
    #[cold]
    fn from(status: Status) -> Self {
        let (code, message, details, metadata) = status.into_parts();
        Self::with_details_and_metadata(code.into(), message, details, metadata.into())
    }
}

impl From<tonic::metadata::MetadataMap> for MetadataMap {
    fn from(metadata: tonic::metadata::MetadataMap) -> Self {
        Self::from_headers(metadata.into_headers())
    }
}

impl From<MetadataMap> for tonic::metadata::MetadataMap {
    fn from(metadata: MetadataMap) -> Self {
        Self::from_headers(metadata.into_headers())
    }
}

impl<T> From<tonic::Request<T>> for Request<T> {
    fn from(request: tonic::Request<T>) -> Self {
        let (metadata, extensions, message) = request.into_parts();
        Self::from_parts(metadata.into(), extensions, message)
    }
}

impl<T> From<Request<T>> for tonic::Request<T> {
    fn from(request: Request<T>) -> Self {
        let (metadata, extensions, message) = request.into_parts();
        Self::from_parts(metadata.into(), extensions, message)
    }
}

impl<T> From<tonic::Response<T>> for Response<T> {
    fn from(response: tonic::Response<T>) -> Self {
        let (metadata, message, extensions) = response.into_parts();
        Self::from_parts(metadata.into(), message, extensions)
    }
}

impl<T> From<Response<T>> for tonic::Response<T> {
    fn from(response: Response<T>) -> Self {
        let (metadata, message, extensions) = response.into_parts();
        Self::from_parts(metadata.into(), message, extensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_there_and_back() {
        for code in Code::ALL {
            assert_eq!(Code::from(tonic::Code::from(code)), code);
        }
        let mut status = Status::with_details(Code::Aborted, "no", Bytes::from_static(b"why"));
        status.metadata_mut().insert("a", "b".parse().unwrap());
        let back = Status::from(tonic::Status::from(status.clone()));
        assert_eq!(format!("{back:?}"), format!("{status:?}"));

        let mut request = Request::new(1);
        request.metadata_mut().insert("a", "b".parse().unwrap());
        request.extensions_mut().insert(2_u8);
        let back = Request::from(tonic::Request::from(request));
        assert_eq!(
            (back.metadata().get("a").unwrap(), back.extensions().get()),
            (&"b".parse().unwrap(), Some(&2_u8))
        );
        let (metadata, extensions, message) = back.into_parts();
        let back = Response::from(tonic::Response::from(Response::from_parts(metadata, message, extensions)));
        assert_eq!((back.metadata().len(), back.extensions().get(), back.get_ref()), (1, Some(&2_u8), &1));
    }
}
