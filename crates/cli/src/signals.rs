//! SIGINT and SIGTERM: the first requests an end, the second exits.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::alternate_screen;
use crate::failure::{Failure, INTERRUPTED};

/// Completes on the first SIGINT or SIGTERM. A second one exits the process immediately.
///
/// Signals are caught from this call on, even before the future is polled. Must be called within a runtime.
pub(crate) fn interrupt() -> Result<impl Future<Output = ()> + Send, Failure> {
    let catch = |kind| signal(kind).map_err(|error| handler_failure(&error));
    let (mut interrupt, mut terminate) = (catch(SignalKind::interrupt())?, catch(SignalKind::terminate())?);
    let (asked, asks) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut either = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        either().await;
        // Fails only if the run has already ended.
        let _ = asked.send(());
        either().await;
        alternate_screen::leave();
        std::process::exit(INTERRUPTED.into());
    });
    Ok(async move {
        if asks.await.is_err() {
            // The runtime is shutting down.
            std::future::pending::<()>().await;
        }
    })
}

/// Returns the failure to listen for signals.
pub(crate) fn handler_failure(error: &io::Error) -> Failure {
    Failure::failed(format!("failed to listen for signals: {error}"))
}
