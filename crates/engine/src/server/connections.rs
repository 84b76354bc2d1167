//! The open connections of a server.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use slab::Slab;
use thalweg_http2::ErrorCode;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::connection::Connection;

/// The open connections of a server, for all that is done to each of them.
#[derive(Debug)]
pub(super) struct Connections {
    open: Mutex<Slab<(Arc<Connection>, u64)>>,
    emptied: Notify,
    draining: watch::Sender<bool>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { open: Mutex::default(), emptied: Notify::new(), draining: watch::Sender::new(false) }
    }
}

/// How often idle connections are looked for, to give their memory back.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl Connections {
    pub(super) fn register(self: &Arc<Self>, connection: &Arc<Connection>) -> Registered {
        let index = self.lock().insert((Arc::clone(connection), 0));
        if *self.draining.borrow() {
            drain(connection);
        }
        Registered { connections: Arc::clone(self), index }
    }

    fn lock(&self) -> MutexGuard<'_, Slab<(Arc<Connection>, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections on which nothing has moved since the last look give their spare memory back.
    pub(super) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            for (_, (connection, activity)) in &mut *self.lock() {
                let mut state = connection.lock();
                if *activity != state.activity {
                    *activity = state.activity;
                } else if !state.shrunk {
                    state.shrink();
                }
            }
        }
    }

    /// Tells every client to go, waits for their calls, and cuts off what is left after `grace`.
    pub(super) async fn drain(&self, grace: Duration) {
        self.draining.send_replace(true);
        for (_, (connection, _)) in &*self.lock() {
            drain(connection);
        }
        if tokio::time::timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        for (_, (connection, _)) in &*self.lock() {
            let mut state = connection.lock();
            state.http2.close(ErrorCode::NoError, b"the server's shutdown grace is over");
            state.notify_driver();
        }
        // The drivers flush that, and linger a moment at most.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.emptied()).await;
    }

    pub(super) async fn emptied(&self) {
        let mut emptied = Box::pin(self.emptied.notified());
        poll_fn(|cx| {
            loop {
                let notified = emptied.as_mut().poll(cx);
                if self.lock().is_empty() {
                    return Poll::Ready(());
                }
                if notified.is_pending() {
                    return Poll::Pending;
                }
                emptied = Box::pin(self.emptied.notified());
            }
        })
        .await;
    }
}

fn drain(connection: &Connection) {
    let mut state = connection.lock();
    state.http2.drain(Instant::now().into_std());
    state.notify_driver();
}

/// A connection's entry in the list, given up when it is over.
pub(super) struct Registered {
    connections: Arc<Connections>,
    index: usize,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.remove(self.index);
        if open.is_empty() {
            self.connections.emptied.notify_waiters();
        }
    }
}
