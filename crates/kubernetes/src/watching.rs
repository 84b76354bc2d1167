//! The task that watches a service.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::client::{Client, RequestError, Watch};
use crate::progress::{Failure, Next, Progress};
use crate::slices::{Listing, Slices, WatchEvent};
use crate::target::Port;

/// The servers of a service, as last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// `None` before the first list.
    pub(crate) listing: Option<Listing>,
    /// Rises with each change of the listing.
    pub(crate) version: u64,
    /// Reason why the first list has failed.
    pub(crate) error: Option<String>,
}

/// A watch that lasted so long has worked, even without an event.
const WORKING_WATCH: Duration = Duration::from_secs(1);

/// Watches the slices of a service, and publishes its servers. They stay while the API server does not respond.
#[derive(Debug)]
pub(crate) struct Watching {
    /// The service, for messages.
    pub(crate) name: String,
    pub(crate) port: Port,
    pub(crate) client: Client,
    pub(crate) progress: Progress,
    pub(crate) slices: Slices,
    pub(crate) known: Arc<watch::Sender<Known>>,
    /// The last failure, which is logged once.
    pub(crate) failure: Option<String>,
}

impl Watching {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            let next = self.progress.next();
            let outcome = match &next {
                Next::List { latest } => self.list(*latest).await,
                Next::Watch(version) => self.watch(version).await,
            };
            if let Err(error) = outcome {
                let delay = self.failed(&next, &error);
                sleep(delay).await;
            }
        }
    }

    async fn list(&mut self, latest: bool) -> Result<(), RequestError> {
        let list = self.client.list(latest).await?;
        self.slices.replace(list.items.unwrap_or_default());
        self.publish();
        self.progress.listed(list.metadata.resource_version);
        Ok(())
    }

    async fn watch(&mut self, version: &str) -> Result<(), RequestError> {
        let watch = self.client.watch(version, random_unit()).await?;
        let started = Instant::now();
        let mut has_events = false;
        let outcome = self.follow(watch, &mut has_events).await;
        let has_worked = has_events || started.elapsed() >= WORKING_WATCH;
        if has_worked {
            self.progress.worked();
        }
        match outcome {
            // API servers end watches after some minutes, and connections when they restart.
            Err(RequestError::Connection(_)) if has_worked => {
                self.client.disconnect();
                Ok(())
            }
            Ok(()) if !has_worked => Err(RequestError::EndedAtOnce),
            outcome => outcome,
        }
    }

    /// Applies the events of a watch until its end.
    async fn follow(&mut self, mut watch: Watch, has_events: &mut bool) -> Result<(), RequestError> {
        while let Some(events) = watch.next().await? {
            *has_events |= events.iter().any(|event| !matches!(event, WatchEvent::Error(_)));
            self.apply(events)?;
        }
        Ok(())
    }

    /// Applies the events of one read.
    fn apply(&mut self, events: Vec<WatchEvent>) -> Result<(), RequestError> {
        let mut error = None;
        for event in events {
            match event {
                WatchEvent::Error(status) => error = Some(RequestError::Status { status, retry_after: None }),
                event => {
                    self.progress.watched(event.resource_version());
                    self.slices.apply(event);
                }
            }
        }
        self.publish();
        if let Some(error) = error {
            return Err(error);
        }
        if self.failure.take().is_some() {
            tracing::debug!(service = %self.name, "watching again");
        }
        Ok(())
    }

    /// Publishes the servers, if they have changed.
    fn publish(&self) {
        let listing = self.slices.listing(&self.port);
        self.known.send_if_modified(|known| {
            known.error = None;
            let has_changed = known.listing.as_ref() != Some(&listing);
            if has_changed {
                known.version += 1;
                known.listing = Some(listing);
            }
            has_changed
        });
    }

    /// Notes a failure. Returns the delay before the next request.
    fn failed(&mut self, next: &Next, error: &RequestError) -> Duration {
        let (failure, delay_min) = match error {
            RequestError::Status { status, .. } if status.code == 410 => (Failure::Gone, None),
            RequestError::Status { retry_after, .. } => (Failure::Refused, *retry_after),
            RequestError::Invalid(_) => (Failure::Refused, None),
            _ => (Failure::Interrupted, None),
        };
        if !matches!(error, RequestError::Status { .. }) {
            self.client.disconnect();
        }
        let delay = self.progress.failed(failure, random_unit()).max(delay_min.unwrap_or_default());
        if failure == Failure::Gone {
            tracing::debug!(service = %self.name, %error, "listing again");
            return delay;
        }
        let verb = if matches!(next, Next::List { .. }) { "list" } else { "watch" };
        let text = format!("failed to {verb} the EndpointSlices of {}: {error}", self.name);
        if self.failure.as_deref() == Some(text.as_str()) {
            tracing::debug!(error = text, ?delay, "still failing");
        } else {
            tracing::warn!(error = text, ?delay, "the known servers stay");
        }
        self.known.send_if_modified(|known| {
            let is_first = known.listing.is_none();
            if is_first {
                known.error = Some(text.clone());
            }
            is_first
        });
        self.failure = Some(text);
        delay
    }
}

impl Drop for Watching {
    /// Wakes those who wait for changes, since its runtime may have ended: they resolve, which starts another watch.
    fn drop(&mut self) {
        self.known.send_modify(|known| known.version += 1);
    }
}

/// Returns a random number in 0..1.
fn random_unit() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
