//! Accepted connections: [`Incoming`].

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tokio_stream::Stream;

use crate::transport::error::BoxError;

/// Pause after running out of file descriptors; connections that close meanwhile release some.
const PAUSE: Duration = Duration::from_millis(50);

pin_project! {
    /// A stream of accepted connections that skips errors.
    pub(super) struct Incoming<I> {
        #[pin]
        incoming: I,
        pause: Option<Pin<Box<Sleep>>>,
    }
}

impl<I> Incoming<I> {
    pub(super) fn new(incoming: I) -> Self {
        Self { incoming, pause: None }
    }
}

impl<I, IO, E> Stream for Incoming<I>
where
    I: Stream<Item = Result<IO, E>>,
    E: Into<BoxError>,
{
    type Item = IO;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<IO>> {
        let mut this = self.project();
        loop {
            if let Some(pause) = this.pause {
                ready!(pause.as_mut().poll(cx));
                *this.pause = None;
            }
            match ready!(this.incoming.as_mut().poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(io)) => return Poll::Ready(Some(io)),
                Some(Err(error)) => {
                    let error: BoxError = error.into();
                    tracing::debug!(error, "failed to accept a connection");
                    if is_out_of_descriptors(&error) {
                        *this.pause = Some(Box::pin(tokio::time::sleep(PAUSE)));
                    }
                }
            }
        }
    }
}

/// EMFILE and ENFILE: without a pause, a listener returns them immediately and repeatedly.
fn is_out_of_descriptors(error: &BoxError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    matches!(error.and_then(io::Error::raw_os_error), Some(24 | 23))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accept_errors_are_skipped_with_pause_if_out_of_descriptors() {
        let check = async |error: fn() -> io::Error, millis: u128| {
            let started = Instant::now();
            let incoming = tokio_stream::iter([Err(error()), Ok(1), Err(error()), Err(error()), Ok(2)]);
            let accepted: Vec<_> = Incoming::new(incoming).collect().await;
            assert_eq!(accepted, [1, 2]);
            // The clock's resolution is a millisecond.
            assert_eq!(started.elapsed().as_millis() / 10, millis / 10);
        };
        check(|| io::ErrorKind::ConnectionAborted.into(), 0).await;
        check(|| io::Error::from_raw_os_error(24), 150).await;
    }
}
