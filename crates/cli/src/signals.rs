//! SIGINT and SIGTERM: the first one asks, the second one tells.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::alternate_screen;
use crate::failure::{Failure, INTERRUPTED};

/// Ends when the first SIGINT or SIGTERM comes. A second one ends the process at once.
///
/// Both are caught from this call on, not only once the future is awaited. Called within a runtime.
pub(crate) fn interrupt() -> Result<impl Future<Output = ()> + Send, Failure> {
    let catch = |kind| signal(kind).map_err(|error| unheard(&error));
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
        // Nobody waits any more when the run has just ended by itself.
        let _ = asked.send(());
        either().await;
        alternate_screen::leave();
        std::process::exit(INTERRUPTED.into());
    });
    Ok(async move {
        if asks.await.is_err() {
            // The runtime is going down, and everything with it.
            std::future::pending::<()>().await;
        }
    })
}

/// Signals cannot be listened for.
pub(crate) fn unheard(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot listen for signals: {error}"))
}
