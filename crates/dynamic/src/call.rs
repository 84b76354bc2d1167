//! Calls any method, from requests to status.

use std::pin::pin;

use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Method, Raw, Request, Status};

use crate::requests::{RequestError, RequestSource};
use crate::resolved_method::ResolvedMethod;

/// Outcome of a call.
#[derive(Debug)]
pub struct Outcome {
    /// Metadata of the response.
    pub headers: MetadataMap,
    /// Trailers.
    pub trailers: MetadataMap,
    /// Status.
    pub status: Status,
}

/// A received part of the response.
#[derive(Debug)]
pub enum Received {
    /// Its headers.
    Headers,
    /// A message.
    Message(Bytes),
    /// The end of its messages.
    End,
}

impl ResolvedMethod {
    /// Makes a call of any type. Calls `sent` for each request sent, and with `None` after the last. Calls `received`
    /// for each received part.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid request, and the first error of `received`.
    pub async fn call<E: From<RequestError>>(
        &self,
        channel: &Channel,
        metadata: MetadataMap,
        source: RequestSource,
        options: &CallOptions,
        sent: impl FnMut(Option<&Bytes>) + Send + Unpin + 'static,
        received: impl AsyncFnMut(Received) -> Result<(), E>,
    ) -> Result<Outcome, E> {
        let (mut requests, failure) = source.start(self, sent)?;
        let mut failure = pin!(failure);
        if !self.is_client_streaming {
            // A server may respond to the headers alone, before an invalid request is found.
            tokio::select! {
                biased;
                failure = &mut failure => return Err(failure.why.into()),
                () = requests.wait_for_first() => {}
            }
        }
        let mut request = Request::new(requests);
        *request.metadata_mut() = metadata;
        tokio::select! {
            biased;
            failure = &mut failure => Err(failure.why.into()),
            outcome = self.exchange(channel, request, options, received) => outcome,
        }
    }

    /// Makes the call as bidirectional streaming: call types differ on the wire only in the number of messages.
    async fn exchange<E: From<RequestError>>(
        &self,
        channel: &Channel,
        request: Request<impl thalweg::Stream<Item = Raw> + Send + 'static>,
        options: &CallOptions,
        mut received: impl AsyncFnMut(Received) -> Result<(), E>,
    ) -> Result<Outcome, E> {
        let method =
            Method::from_path(&self.path).map_err(|error| RequestError::Invalid(error.to_string()))?;
        let (headers, mut messages) = match channel.bidi_streaming::<_, Raw>(&method, request, options).await
        {
            Ok(response) => {
                let (headers, messages, _) = response.into_parts();
                (headers, messages)
            }
            Err(status) => return Ok(failed(MetadataMap::new(), status)),
        };
        received(Received::Headers).await?;
        let mut count = 0_u64;
        loop {
            match messages.message().await {
                Ok(Some(Raw(wire))) => {
                    count += 1;
                    received(Received::Message(wire)).await?;
                }
                Ok(None) => break,
                Err(status) => return Ok(failed(headers, status)),
            }
        }
        received(Received::End).await?;
        let trailers = match messages.trailers().await {
            Ok(trailers) => trailers.unwrap_or_default(),
            Err(status) => return Ok(failed(headers, status)),
        };
        let status = match count {
            1 => Status::ok(""),
            _ if self.is_server_streaming => Status::ok(""),
            // grpc-go reports the same for a call that ends with OK and has not exactly one response.
            count => Status::internal(format!("the method has one response, and the server sent {count}")),
        };
        Ok(Outcome { headers, trailers, status })
    }
}

/// Returns the outcome of a failed call, whose trailers are in the status.
fn failed(headers: MetadataMap, status: Status) -> Outcome {
    Outcome { headers, trailers: status.metadata().clone(), status }
}
