//! Transports of calls: [`Transport`].

use http::{Request, Response};
use thalweg_engine::{CallOptions, Channel, Status};

use super::http1::Http1;
use crate::body::Body;

/// Transport of calls.
#[derive(Clone, Debug)]
pub enum Transport {
    /// HTTP/2, through the lanes of a channel.
    Http2(Channel),
    /// HTTP/1.1, with one connection per active call.
    Http1(Http1),
}

impl Transport {
    // Not an `async fn`, which would store the request twice.
    #[expect(clippy::manual_async_fn, reason = "saves 70 instructions per call")]
    pub(super) fn send(
        &self,
        request: Request<Body>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<Body>, Status>> + Send {
        async move {
            match self {
                // Boxed, because these are large, and the futures around them are moved.
                Self::Http2(channel) => Ok(Box::pin(channel.raw(request, options)).await?.map(Body::from)),
                Self::Http1(http1) => Box::pin(http1.send(request)).await,
            }
        }
    }
}

impl From<Channel> for Transport {
    fn from(channel: Channel) -> Self {
        Self::Http2(channel)
    }
}

impl From<Http1> for Transport {
    fn from(http1: Http1) -> Self {
        Self::Http1(http1)
    }
}
