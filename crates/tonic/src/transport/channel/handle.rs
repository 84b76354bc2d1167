//! Client channels: [`Channel`].

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::body::Body;
use bytes::Bytes;
use http::uri::InvalidUri;
use http::{Request, Response, Uri};
use hyper::rt::{self, Executor};
use hyper_util::rt::TokioExecutor;
use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Sender};
use tower::Service;
use vocabulary::ConnectError;

use super::balance::{self, Change};
use super::connection::Connection;
use super::connector;
use super::endpoint::Endpoint;
use super::layers::{BUFFER_DEFAULT, Stack, StackFuture};
use crate::transport::error::{BoxError, Error};
use crate::transport::timeout::Timeout;

/// A client's handle to a server or to a list of servers. Cheap to clone; clones share the connections.
///
/// A channel adapts its number of connections to the load and reconnects them when they break. It closes them once its
/// last clone is dropped and their calls have finished.
///
/// Calls may be made from any thread. On a thread without a runtime, timers and connections use the runtime in which
/// the channel was created.
#[derive(Clone)]
pub struct Channel {
    stack: Stack<Connection>,
    /// The runtime in which the channel was created.
    runtime: Option<Handle>,
}

pin_project! {
    /// A pending response.
    pub struct ResponseFuture {
        #[pin]
        future: StackFuture<<Connection as Service<Request<Body>>>::Future>,
        // Runtime to poll in if the caller has none.
        runtime: Option<Handle>,
    }
}

impl Channel {
    /// Returns an [`Endpoint`] at `uri`.
    pub fn builder(uri: Uri) -> Endpoint {
        Endpoint::from(uri)
    }

    /// Returns an [`Endpoint`] at `scheme://host:port`.
    ///
    /// # Panics
    /// Panics if `s` is not a valid URI.
    pub fn from_static(s: &'static str) -> Endpoint {
        Self::builder(Uri::from_static(s))
    }

    /// Returns an [`Endpoint`] at `scheme://host:port`.
    ///
    /// # Errors
    /// Returns an error if `s` is not a valid URI.
    pub fn from_shared(s: impl Into<Bytes>) -> Result<Endpoint, InvalidUri> {
        Ok(Self::builder(Uri::from_maybe_shared(s.into())?))
    }

    /// Creates a channel that balances calls over endpoints.
    pub fn balance_list(list: impl Iterator<Item = Endpoint>) -> Self {
        let endpoints: Vec<Endpoint> = list.collect();
        let name = balance::name_of(endpoints.iter().map(Endpoint::key));
        let (channel, sender) = Self::balanced(endpoints.len().max(1), &name);
        for endpoint in endpoints {
            // The channel has capacity for all of them.
            let _ = sender.try_send(Change::Insert(endpoint.key(), endpoint));
        }
        channel
    }

    /// Creates a channel that balances calls over endpoints, and a sender of changes to them. Up to `capacity` changes
    /// may be queued.
    pub fn balance_channel<K>(capacity: usize) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
    {
        Self::balance_channel_with_executor(capacity, TokioExecutor::new())
    }

    /// Like [`balance_channel`](Self::balance_channel). The executor is not used, since calls are not queued by a task.
    pub fn balance_channel_with_executor<K, E>(
        capacity: usize,
        executor: E,
    ) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
        E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    {
        drop(executor);
        Self::balanced(capacity, "balanced channel")
    }

    /// Creates a balanced channel with a name for messages.
    fn balanced<K>(capacity: usize, name: &str) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
    {
        let (sender, receiver) = mpsc::channel(capacity);
        let stack = match balance::balance(receiver, name) {
            Ok((channel, timeouts)) => {
                Stack::Plain(Timeout::of_endpoints(Connection::new(channel, BUFFER_DEFAULT), timeouts))
            }
            Err(error) => Stack::Failed(error),
        };
        (Self::new_with(stack), sender)
    }

    /// Returns the engine's channel; `None` if it could not be set up.
    pub(super) fn engine(&self) -> Option<&thalweg_engine::Channel> {
        self.stack.innermost().map(|connection| &connection.engine)
    }

    /// Returns why the channel could not be set up.
    pub(super) fn setup_error(&self) -> Option<Error> {
        match &self.stack {
            Stack::Failed(error) => Some(error.clone()),
            Stack::Plain(_) | Stack::Queued(..) => None,
        }
    }

    /// Creates a channel that connects through `connector` on the first call. Same as
    /// [`Endpoint::connect_with_connector_lazy`].
    #[expect(clippy::needless_pass_by_value, reason = "tonic's signature")]
    pub fn new<C>(connector: C, endpoint: Endpoint) -> Self
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Send,
        C::Response: rt::Read + rt::Write + Unpin + Send + 'static,
    {
        Self::lazy(&endpoint, open_with(&endpoint, connector))
    }

    /// Creates a channel and connects it through `connector`. Same as [`Endpoint::connect_with_connector`].
    ///
    /// # Errors
    /// Returns an error if no connection can be made.
    pub async fn connect<C>(connector: C, endpoint: Endpoint) -> Result<Self, Error>
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Unpin + Send,
        C::Response: rt::Read + rt::Write + Unpin + Send + 'static,
    {
        Self::connected(&endpoint, open_with(&endpoint, connector)).await
    }

    /// Polls whether a call may be made, like [`Service::poll_ready`]: not while as many calls wait for a connection or
    /// a free stream as [`Endpoint::buffer_size`] says. A channel that could not be set up is ready, and its calls fail
    /// with the reason.
    ///
    /// A channel is a service for requests with two body types, its own and tonic's. This method serves both, so
    /// programs that name neither type compile.
    ///
    /// # Errors
    /// Returns an error if no call can ever be made.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stack.poll_ready(cx)
    }

    /// Waits until a call may be made, like `tower::ServiceExt::ready`, for both body types.
    ///
    /// # Errors
    /// Returns an error if no call can ever be made.
    pub async fn ready(&mut self) -> Result<&mut Self, Error> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        Ok(self)
    }

    fn lazy(endpoint: &Endpoint, opened: Result<thalweg_engine::Channel, Error>) -> Self {
        let stack = match opened {
            Ok(channel) => {
                let limits = endpoint.limits();
                limits.wrap(Connection::new(channel, limits.buffer_len()), endpoint.shared_executor())
            }
            Err(error) => Stack::Failed(error),
        };
        Self::new_with(stack)
    }

    fn new_with(stack: Stack<Connection>) -> Self {
        Self { stack, runtime: Handle::try_current().ok() }
    }

    fn start(&mut self, request: Request<Body>) -> ResponseFuture {
        // Tasks run in a runtime, so most calls skip the lookup of the runtime.
        let is_inside = tokio::task::try_id().is_some() || Handle::try_current().is_ok();
        let runtime = if is_inside { None } else { self.runtime.clone() };
        let future = {
            let _entered = runtime.as_ref().map(Handle::enter);
            self.stack.call(request)
        };
        ResponseFuture { future, runtime }
    }

    async fn connected(
        endpoint: &Endpoint,
        opened: Result<thalweg_engine::Channel, Error>,
    ) -> Result<Self, Error> {
        let channel = opened?;
        channel.connect().await.map_err(|error| Error::transport(ConnectError(error.into())))?;
        Ok(Self::lazy(endpoint, Ok(channel)))
    }
}

impl Endpoint {
    /// Connects a channel.
    ///
    /// # Errors
    /// Returns an error if no connection can be made.
    pub async fn connect(&self) -> Result<Channel, Error> {
        Channel::connected(self, open(self)).await
    }

    /// Creates a channel that connects on the first call. Calls fail if the endpoint is invalid.
    pub fn connect_lazy(&self) -> Channel {
        Channel::lazy(self, open(self))
    }

    /// Connects a channel through `connector`, over any byte stream. `connector` is called again when a connection
    /// breaks and for each additional connection. An `https://` endpoint uses TLS over it.
    ///
    /// # Errors
    /// Returns an error if no connection can be made.
    pub async fn connect_with_connector<C>(&self, connector: C) -> Result<Channel, Error>
    where
        C: Service<Uri> + Send + 'static,
        C::Response: rt::Read + rt::Write + Send + Unpin,
        C::Future: Send,
        BoxError: From<C::Error> + Send,
    {
        let connector = tower::ServiceExt::map_err(connector, BoxError::from);
        Channel::connected(self, open_with(self, connector)).await
    }

    /// Like [`connect_with_connector`](Self::connect_with_connector), but connects on the first call.
    pub fn connect_with_connector_lazy<C>(&self, connector: C) -> Channel
    where
        C: Service<Uri> + Send + 'static,
        C::Response: rt::Read + rt::Write + Send + Unpin,
        C::Future: Send,
        BoxError: From<C::Error> + Send,
    {
        let connector = tower::ServiceExt::map_err(connector, BoxError::from);
        Channel::lazy(self, open_with(self, connector))
    }
}

fn open(endpoint: &Endpoint) -> Result<thalweg_engine::Channel, Error> {
    let (target, config) = endpoint.config()?;
    thalweg_engine::Channel::new(&target, config).map_err(Error::transport)
}

fn open_with<C>(endpoint: &Endpoint, connector: C) -> Result<thalweg_engine::Channel, Error>
where
    C: Service<Uri> + Send + 'static,
    C::Error: Into<BoxError> + Send,
    C::Future: Send,
    C::Response: rt::Read + rt::Write + Unpin + Send + 'static,
{
    let (target, mut config) = endpoint.config()?;
    connector::set_connector(&mut config, connector, endpoint.uri());
    thalweg_engine::Channel::new(&target, config).map_err(Error::transport)
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stack.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        self.start(request)
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.runtime.as_ref().map(Handle::enter);
        this.future.poll(cx)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
