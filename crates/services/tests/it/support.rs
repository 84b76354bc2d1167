//! A server on a free port, and its channel.

use std::time::Duration;

use thalweg::server::{ServeError, ServerBuilder};
use thalweg::{Channel, Server};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Timeout, far longer than any test step takes even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A server that can be stopped, and a channel to it.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) channel: Channel,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    /// Starts a server with the services that `add` adds. The grace period is unlimited.
    pub(crate) async fn start(add: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let server = add(Server::builder()).shutdown_grace(Duration::from_secs(1 << 30));
        let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a free port");
        let address = server.local_addresses()[0].to_string();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
        let channel = Channel::builder(&address).connect().await.expect("it listens");
        Self { address, channel, stop, serving }
    }

    /// Stops the server. The future completes when it has ended.
    pub(crate) fn stop(self) -> impl Future<Output = ()> {
        self.stop.send(()).expect("it serves");
        async { soon(self.serving).await.expect("no panic").expect("a clean end") }
    }
}

/// Returns the future's output. Panics if it takes too long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("it does not hang")
}
