//! Authenticated calls.

use std::time::Duration;

use thalweg::metadata::{Ascii, MetadataValue};
use thalweg::{Channel, InterceptedChannel, Request, Status};

use crate::proto::chat_client::ChatClient;

/// Deadline of calls that the server answers immediately. A slower server is treated as lost.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The session's token.
#[derive(Clone)]
pub(crate) struct Token(MetadataValue<Ascii>);

impl Token {
    pub(crate) fn new(token: &str) -> Result<Self, Status> {
        let value = format!("Bearer {token}").parse();
        let mut value: MetadataValue<Ascii> =
            value.map_err(|_| Status::internal("the server's token is no metadata"))?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Creates a client whose calls carry the token.
    pub(crate) fn client(&self, channel: Channel) -> ChatClient<InterceptedChannel> {
        let token = self.0.clone();
        ChatClient::with_interceptor(channel, move |mut request: Request<()>| {
            request.metadata_mut().insert("authorization", token.clone());
            Ok(request)
        })
    }
}

/// Creates a request with a deadline of [`TIMEOUT`].
pub(crate) fn with_timeout<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}
