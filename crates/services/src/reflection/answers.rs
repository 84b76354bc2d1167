//! Responses to a client's requests.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg::{Code, Status, Stream, Streaming};

use super::descriptors::Sent;
use super::known::Known;
use super::pb::server_reflection_request::MessageRequest as Asked;
use super::pb::server_reflection_response::MessageResponse as Answer;
use super::pb::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};

/// Stream of one response per request. An idle stream ends when the server drains, which would otherwise wait for it.
pub(super) struct Answers {
    known: Arc<Known>,
    requests: Streaming<ServerReflectionRequest>,
    sent: Sent,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl Answers {
    pub(super) fn new(known: Arc<Known>, requests: Streaming<ServerReflectionRequest>) -> Self {
        let server = known.server.clone();
        Self {
            sent: known.descriptors.nothing_sent(),
            draining: Box::pin(async move { server.draining().await }),
            known,
            requests,
            is_over: false,
        }
    }

    fn answer(&mut self, request: ServerReflectionRequest) -> ServerReflectionResponse {
        let answer = match &request.message_request {
            Some(asked) => self.find(asked).unwrap_or_else(|why| error(Code::NotFound, why)),
            None => error(Code::InvalidArgument, "the request asks for nothing".to_owned()),
        };
        ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(answer),
        }
    }

    /// Returns the response, or a message for NOT_FOUND.
    fn find(&mut self, asked: &Asked) -> Result<Answer, String> {
        let descriptors = &self.known.descriptors;
        let file = match asked {
            Asked::ListServices(_) => {
                let service = |name: &str| ServiceResponse { name: name.to_owned() };
                let service = self.known.services().into_iter().map(service).collect();
                return Ok(Answer::ListServicesResponse(ListServiceResponse { service }));
            }
            Asked::AllExtensionNumbersOfType(name) => {
                let numbers = descriptors.extension_numbers(name);
                let extension_number = numbers.ok_or_else(|| format!("no message {name} is known"))?;
                return Ok(Answer::AllExtensionNumbersResponse(ExtensionNumberResponse {
                    base_type_name: name.clone(),
                    extension_number,
                }));
            }
            Asked::FileByFilename(name) => {
                descriptors.file(name).ok_or_else(|| format!("no file {name} is known"))?
            }
            Asked::FileContainingSymbol(symbol) => {
                descriptors.declaring(symbol).ok_or_else(|| self.unknown_symbol(symbol))?
            }
            Asked::FileContainingExtension(extension) => {
                let (message, number) = (&extension.containing_type, extension.extension_number);
                descriptors
                    .extending(message, number)
                    .ok_or_else(|| format!("no extension {number} of {message} is known"))?
            }
        };
        let file_descriptor_proto = descriptors.with_imports(file, &mut self.sent);
        Ok(Answer::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto }))
    }

    fn unknown_symbol(&self, symbol: &str) -> String {
        if self.known.server.has_service(symbol) {
            format!(
                "the server has {symbol}, but no descriptor of it: its reflection was not given the descriptor set"
            )
        } else {
            format!("no symbol {symbol} is known")
        }
    }
}

fn error(code: Code, error_message: String) -> Answer {
    Answer::ErrorResponse(ErrorResponse { error_code: code.into(), error_message })
}

impl Stream for Answers {
    type Item = Result<ServerReflectionResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.requests).poll_next(cx) {
            Poll::Ready(request) => {
                Poll::Ready(request.map(|request| request.map(|request| self.answer(request))))
            }
            Poll::Pending if self.draining.as_mut().poll(cx).is_ready() => {
                self.is_over = true;
                Poll::Ready(Some(Err(Status::unavailable("the server is shutting down"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}
