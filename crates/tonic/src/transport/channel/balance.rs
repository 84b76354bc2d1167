//! Several endpoints behind one channel.

use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::body::Body;
use http::{Request, Response};
use tokio::sync::mpsc::Receiver;
use tokio_stream::Stream;
use tower::Service;
use tower::balance::p2c::Balance;
use tower::discover::Change as DiscoverChange;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};

use super::endpoint::Endpoint;
use super::layers::{BUFFER_DEFAULT, SharedExecutor, Stack};
use crate::transport::error::{BoxError, Error};

/// A change to the endpoints of a channel.
#[derive(Clone, Debug)]
pub enum Change<K, V> {
    /// Adds an endpoint under this key, replacing any other.
    Insert(K, V),
    /// Removes the endpoint under this key.
    Remove(K),
}

/// Balances calls over the endpoints from `changes`: of two random endpoints, the one with fewer calls in flight takes
/// a call. `connect` creates a service for each.
pub(super) fn balance<K, S, T>(
    changes: Receiver<Change<K, Endpoint>>,
    connect: impl Fn(Endpoint) -> S + Send + Unpin + 'static,
    executor: &SharedExecutor,
) -> Stack<T>
where
    K: Hash + Eq + Send + Clone + 'static,
    S: Service<Request<Body>, Response = Response<Body>, Error = Error> + Send + 'static,
    S::Future: Send,
{
    let services = Services { changes, connect };
    let services = PendingRequestsDiscover::new(services, CompleteOnResponse::default());
    Stack::queued(Balance::new(services), BUFFER_DEFAULT, executor)
}

struct Services<K, F> {
    changes: Receiver<Change<K, Endpoint>>,
    connect: F,
}

impl<K, S, F> Stream for Services<K, F>
where
    F: Fn(Endpoint) -> S + Unpin,
{
    type Item = Result<DiscoverChange<K, S>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(self.changes.poll_recv(cx)) {
            Some(Change::Insert(key, endpoint)) => {
                let service = (self.connect)(endpoint);
                Poll::Ready(Some(Ok(DiscoverChange::Insert(key, service))))
            }
            Some(Change::Remove(key)) => Poll::Ready(Some(Ok(DiscoverChange::Remove(key)))),
            // All senders are dropped, so the endpoints can no longer change.
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::future::ready;
    use std::sync::Arc;

    use hyper_util::rt::TokioExecutor;
    use tokio::sync::mpsc::channel;
    use tower::util::{BoxService, ServiceExt};

    use super::*;

    type Unused = BoxService<Request<Body>, Response<Body>, Error>;

    #[tokio::test]
    async fn calls_follow_endpoint_changes() {
        let (sender, receiver) = channel(4);
        let connect = |endpoint: Endpoint| {
            tower::service_fn(move |_| {
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(endpoint.uri().to_string());
                ready(Ok(response))
            })
        };
        let executor: SharedExecutor = Arc::new(TokioExecutor::new());
        let stack: Stack<Unused> = balance(receiver, connect, &executor);
        let called = async || {
            let mut called = BTreeSet::new();
            for _ in 0..50 {
                let Stack::Queued(queue) = &stack else { panic!("it is behind a queue") };
                let response = queue.clone().oneshot(Request::new(Body::empty())).await.unwrap();
                called.insert(response.extensions().get::<String>().unwrap().clone());
            }
            called.into_iter().collect::<Vec<_>>()
        };
        let insert = async |key: u32, uri| {
            assert!(sender.send(Change::Insert(key, Endpoint::from_static(uri))).await.is_ok());
        };
        insert(1, "http://a:1").await;
        assert_eq!(called().await, ["http://a:1/"]);
        insert(2, "http://b:1").await;
        assert_eq!(called().await, ["http://a:1/", "http://b:1/"]);
        insert(1, "http://c:1").await;
        assert_eq!(called().await, ["http://b:1/", "http://c:1/"]);
        assert!(sender.send(Change::Remove(2)).await.is_ok());
        assert_eq!(called().await, ["http://c:1/"]);
        drop(sender);
        assert_eq!(called().await, ["http://c:1/"]);
    }
}
