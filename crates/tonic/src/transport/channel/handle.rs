//! What calls are made of: [`Channel`].

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
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
use tonic::ConnectError;
use tower::Service;

use super::balance::{self, Change};
use super::connection::Connection;
use super::connector;
use super::endpoint::Endpoint;
use super::layers::{SharedExecutor, Stack, StackFuture};
use crate::transport::error::{BoxError, Error};

/// Whom a generated client calls. Cheap to clone; clones share its connections.
///
/// It keeps as many connections as help, makes them again when they break, and closes them once its last clone is gone
/// and the calls on them have ended.
///
/// Calls may be made from any thread, also from one without a runtime: then timers and connections are those of the
/// runtime in which the channel was made.
#[derive(Clone)]
pub struct Channel {
    stack: Stack<Connection>,
    /// The one in which it was made.
    runtime: Option<Handle>,
}

pin_project! {
    /// A response head on its way.
    pub struct ResponseFuture {
        #[pin]
        future: StackFuture<<Connection as Service<Request<Body>>>::Future>,
        // What it is polled in, if the caller has none.
        runtime: Option<Handle>,
    }
}

impl Channel {
    /// An [`Endpoint`] at `uri`.
    pub fn builder(uri: Uri) -> Endpoint {
        Endpoint::from(uri)
    }

    /// An [`Endpoint`] at `scheme://host:port`.
    ///
    /// # Panics
    /// When it is no URI.
    pub fn from_static(s: &'static str) -> Endpoint {
        Self::builder(Uri::from_static(s))
    }

    /// An [`Endpoint`] at `scheme://host:port`.
    ///
    /// # Errors
    /// When it is no URI.
    pub fn from_shared(s: impl Into<Bytes>) -> Result<Endpoint, InvalidUri> {
        Ok(Self::builder(Uri::from_maybe_shared(s.into())?))
    }

    /// A channel that spreads its calls over endpoints.
    pub fn balance_list(list: impl Iterator<Item = Endpoint>) -> Self {
        let endpoints: Vec<Endpoint> = list.collect();
        let (channel, sender) = Self::balance_channel(endpoints.len().max(1));
        for endpoint in endpoints {
            // There is space for all of them.
            let _ = sender.try_send(Change::Insert(endpoint.key(), endpoint));
        }
        channel
    }

    /// A channel that spreads its calls over endpoints, which come and go by what is sent. `capacity` is how many
    /// changes may wait.
    pub fn balance_channel<K>(capacity: usize) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
    {
        Self::balance_channel_with_executor(capacity, TokioExecutor::new())
    }

    /// As [`balance_channel`](Self::balance_channel), with what runs the task that calls go through.
    pub fn balance_channel_with_executor<K, E>(
        capacity: usize,
        executor: E,
    ) -> (Self, Sender<Change<K, Endpoint>>)
    where
        K: Hash + Eq + Send + Clone + 'static,
        E: Executor<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    {
        let (sender, receiver) = mpsc::channel(capacity);
        let executor: SharedExecutor = Arc::new(executor);
        let stack = balance::balance(receiver, |endpoint| endpoint.connect_lazy().stack, &executor);
        (Self::new_with(stack), sender)
    }

    /// A channel whose connections `connector` makes, when the first call comes.
    /// [`Endpoint::connect_with_connector_lazy`] is the same.
    #[expect(clippy::needless_pass_by_value, reason = "it is tonic's signature")]
    pub fn new<C>(connector: C, endpoint: Endpoint) -> Self
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Send,
        C::Response: rt::Read + rt::Write + Unpin + Send + 'static,
    {
        Self::lazy(&endpoint, open_with(&endpoint, connector))
    }

    /// A channel whose connections `connector` makes, the first one now. [`Endpoint::connect_with_connector`] is the
    /// same.
    ///
    /// # Errors
    /// When no connection can be made.
    pub async fn connect<C>(connector: C, endpoint: Endpoint) -> Result<Self, Error>
    where
        C: Service<Uri> + Send + 'static,
        C::Error: Into<BoxError> + Send,
        C::Future: Unpin + Send,
        C::Response: rt::Read + rt::Write + Unpin + Send + 'static,
    {
        Self::connected(&endpoint, open_with(&endpoint, connector)).await
    }

    /// Whether a call may be made. It is the [`Service`]'s.
    ///
    /// A channel is a service for requests with either of two bodies, its own and tonic's. This method is for both: a
    /// program that names neither goes on to compile.
    ///
    /// # Errors
    /// When no call will ever be made.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stack.poll_ready(cx)
    }

    /// Waits until a call may be made: `tower::ServiceExt::ready`, for both kinds of requests.
    ///
    /// # Errors
    /// When no call will ever be made.
    pub async fn ready(&mut self) -> Result<&mut Self, Error> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        Ok(self)
    }

    fn lazy(endpoint: &Endpoint, opened: Result<thalweg_engine::Channel, Error>) -> Self {
        let stack = match opened {
            Ok(channel) => endpoint.limits().around(Connection(channel), endpoint.shared_executor()),
            Err(error) => Stack::Failed(error),
        };
        Self::new_with(stack)
    }

    fn new_with(stack: Stack<Connection>) -> Self {
        Self { stack, runtime: Handle::try_current().ok() }
    }

    fn start(&mut self, request: Request<Body>) -> ResponseFuture {
        // A task is in a runtime: most calls are spared the look for one.
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
    /// A channel that is connected.
    ///
    /// # Errors
    /// When no connection can be made.
    pub async fn connect(&self) -> Result<Channel, Error> {
        Channel::connected(self, open(self)).await
    }

    /// A channel that connects when the first call comes. What is wrong with the endpoint is told to calls.
    pub fn connect_lazy(&self) -> Channel {
        Channel::lazy(self, open(self))
    }

    /// A channel whose connections `connector` makes, the first one now: over any byte stream. `connector` is asked
    /// again when one breaks, and for each that the channel opens beside it. With an `https://` endpoint, TLS is put
    /// upon it.
    ///
    /// # Errors
    /// When no connection can be made.
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

    /// As [`connect_with_connector`](Self::connect_with_connector), when the first call comes.
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
    connector::connect_by(&mut config, connector, endpoint.uri());
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

/// For clients of crates that stand on tonic itself.
impl Service<Request<tonic::body::Body>> for Channel {
    type Response = Response<tonic::body::Body>;
    type Error = Error;
    type Future = TonicsResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stack.poll_ready(cx)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> TonicsResponseFuture {
        TonicsResponseFuture { future: self.start(request.map(Body::new)) }
    }
}

pin_project! {
    /// As [`ResponseFuture`], with a body of tonic's own.
    pub struct TonicsResponseFuture {
        #[pin]
        future: ResponseFuture,
    }
}

impl Future for TonicsResponseFuture {
    type Output = Result<Response<tonic::body::Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map_ok(|response| response.map(Into::into))
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
