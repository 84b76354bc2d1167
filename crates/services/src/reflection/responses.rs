//! Responses to a client's requests.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg::{Code, Status, Stream, Streaming};

use super::data::ReflectionData;
use super::descriptors::SentFiles;
use super::pb::server_reflection_request::MessageRequest;
use super::pb::server_reflection_response::MessageResponse;
use super::pb::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};

/// Stream of one response per request. An idle stream ends when the server drains, which would otherwise wait for it.
pub(super) struct Responses {
    data: Arc<ReflectionData>,
    requests: Streaming<ServerReflectionRequest>,
    sent_files: SentFiles,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    has_ended: bool,
}

impl Responses {
    pub(super) fn new(data: Arc<ReflectionData>, requests: Streaming<ServerReflectionRequest>) -> Self {
        let server = data.server.clone();
        Self {
            sent_files: data.descriptors.none_sent(),
            draining: Box::pin(async move { server.draining().await }),
            data,
            requests,
            has_ended: false,
        }
    }

    fn respond(&mut self, request: ServerReflectionRequest) -> ServerReflectionResponse {
        let message = match &request.message_request {
            Some(requested) => self.find(requested).unwrap_or_else(|why| error(Code::NotFound, why)),
            None => error(Code::InvalidArgument, "the request is empty".to_owned()),
        };
        ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(message),
        }
    }

    /// Returns the response, or a message for NOT_FOUND.
    fn find(&mut self, requested: &MessageRequest) -> Result<MessageResponse, String> {
        let descriptors = &self.data.descriptors;
        let file = match requested {
            MessageRequest::ListServices(_) => {
                let service = |name: &str| ServiceResponse { name: name.to_owned() };
                let service = self.data.services().into_iter().map(service).collect();
                return Ok(MessageResponse::ListServicesResponse(ListServiceResponse { service }));
            }
            MessageRequest::AllExtensionNumbersOfType(name) => {
                let numbers = descriptors.extension_numbers(name);
                let extension_number = numbers.ok_or_else(|| format!("unknown message {name}"))?;
                return Ok(MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                    base_type_name: name.clone(),
                    extension_number,
                }));
            }
            MessageRequest::FileByFilename(name) => {
                descriptors.file(name).ok_or_else(|| format!("unknown file {name}"))?
            }
            MessageRequest::FileContainingSymbol(symbol) => {
                descriptors.declaring(symbol).ok_or_else(|| self.unknown_symbol(symbol))?
            }
            MessageRequest::FileContainingExtension(extension) => {
                let (message, number) = (&extension.containing_type, extension.extension_number);
                descriptors
                    .extending(message, number)
                    .ok_or_else(|| format!("unknown extension {number} of {message}"))?
            }
        };
        let file_descriptor_proto = descriptors.with_imports(file, &mut self.sent_files);
        Ok(MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto }))
    }

    fn unknown_symbol(&self, symbol: &str) -> String {
        if self.data.server.has_service(symbol) {
            format!(
                "the server has no descriptor of {symbol}; add its descriptor set to the reflection service"
            )
        } else {
            format!("unknown symbol {symbol}")
        }
    }
}

fn error(code: Code, error_message: String) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse { error_code: code.into(), error_message })
}

impl Stream for Responses {
    type Item = Result<ServerReflectionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.requests).poll_next(cx) {
            Poll::Ready(request) => {
                Poll::Ready(request.map(|request| request.map(|request| self.respond(request))))
            }
            Poll::Pending if self.draining.as_mut().poll(cx).is_ready() => {
                self.has_ended = true;
                Poll::Ready(Some(Err(Status::unavailable("the server is shutting down"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responses").finish_non_exhaustive()
    }
}
