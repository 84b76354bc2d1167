//! Metrics of an ongoing run: scraped by Prometheus, or pushed by OTLP. They are collected per scrape or push, on a
//! dedicated thread.

mod accept;
mod families;
mod http;
mod otlp;
#[doc(hidden)]
pub mod pb;
mod snapshot;
mod text;

use std::io;
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub use self::otlp::Push;

use self::otlp::Pusher;
use self::snapshot::Latest;
use crate::Running;

/// Exporter of a run's metrics.
pub struct Export {
    latest: Latest,
    /// Stops the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Export {
    /// Serves `/metrics` on a non-blocking listener, and pushes. `say` gets the first failure of a push.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        runtime: Runtime,
        listener: Option<TcpListener>,
        push: Option<Push>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let latest = Latest::default();
        let pusher = push.map(|push| Pusher { push, latest: latest.clone(), say: Box::new(say) });
        let (end, ends) = oneshot::channel();
        let of_thread = latest.clone();
        let work = move || runtime.block_on(work(listener, pusher, of_thread, ends));
        let thread = thread::Builder::new().spawn(work)?;
        Ok(Self { latest, end: Some(end), thread: Some(thread) })
    }

    /// Sets the current run, replacing the previous one.
    pub fn begins(&self, running: &Running) {
        self.latest.set(running);
    }

    /// Pushes once more and stops the thread.
    pub fn end(&mut self) {
        // Both fail only if the thread has panicked, which has been reported.
        let _ = self.end.take().map(|end| end.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves until the run has ended, then pushes a last time.
async fn work(
    listener: Option<TcpListener>,
    pusher: Option<Pusher>,
    latest: Latest,
    ends: oneshot::Receiver<()>,
) {
    let serving = listener.map(|listener| tokio::spawn(http::serve(listener, latest)));
    match pusher {
        Some(pusher) => pusher.until(ends).await,
        // An error means that the sender was dropped, which is an end too.
        None => drop(ends.await),
    }
    if let Some(serving) = serving {
        serving.abort();
    }
}
