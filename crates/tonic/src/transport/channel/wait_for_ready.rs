//! Extension of requests: [`WaitForReady`].

/// Extension of a request: whether its call waits while no server is reachable. By default the channel decides:
/// [`EndpointExt::wait_for_ready`](super::EndpointExt::wait_for_ready).
///
/// ```
/// use thalweg_tonic::Request;
/// use thalweg_tonic::transport::channel::WaitForReady;
///
/// let mut request = Request::new("a message");
/// request.extensions_mut().insert(WaitForReady(true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitForReady(pub bool);
