//! A configuration that is reloaded from its files.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::TlsError;
use super::identity::Changes;

/// Builds a rustls configuration from comparable material.
pub(super) trait Recipe: fmt::Debug + Send + Sync + 'static {
    type Material: PartialEq + Send;
    type Config: Send + Sync;

    /// Reads all files.
    fn read(&self) -> Result<Self::Material, TlsError>;

    /// Builds a configuration. `former` is the current one, if any.
    fn build(
        &self,
        material: &Self::Material,
        former: Option<(&Self::Material, &Self::Config)>,
    ) -> Result<Self::Config, TlsError>;

    /// Returns what may change.
    fn may_change(&self) -> Changes;

    /// Returns the interval of checking files.
    fn interval(&self) -> Duration;
}

/// Default interval of checking files. It is frequent enough for a renewal, which comes days before the old
/// certificate expires, and costs some 50 µs each time.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// A configuration and its material. It needs no task: each new connection checks whether a reload is due.
pub(super) struct Reloaded<R: Recipe> {
    recipe: R,
    current: Mutex<Current<R>>,
}

struct Current<R: Recipe> {
    material: R::Material,
    config: Arc<R::Config>,
    changes: Changes,
    checked_at: Instant,
}

impl<R: Recipe> Reloaded<R> {
    pub(super) fn new(recipe: R) -> Result<Self, TlsError> {
        let changes = recipe.may_change();
        let material = recipe.read()?;
        let config = Arc::new(recipe.build(&material, None)?);
        let current = Current { material, config, changes, checked_at: Instant::now() };
        Ok(Self { recipe, current: Mutex::new(current) })
    }

    /// Returns the configuration for a new connection.
    pub(super) fn config(&self) -> Arc<R::Config> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.recipe.may_change();
        let is_due = changes.has_files && current.checked_at.elapsed() >= self.recipe.interval();
        if changes.version != current.changes.version || is_due {
            current.changes = changes;
            current.checked_at = Instant::now();
            if let Err(error) = self.renew(&mut current) {
                tracing::warn!(%error, "failed to reload certificates; the previous ones stay in use");
            }
        }
        Arc::clone(&current.config)
    }

    fn renew(&self, current: &mut Current<R>) -> Result<(), TlsError> {
        let material = self.recipe.read()?;
        if material != current.material {
            let config = self.recipe.build(&material, Some((&current.material, &current.config)))?;
            current.config = Arc::new(config);
            current.material = material;
            tracing::info!("certificates reloaded");
        }
        Ok(())
    }
}

impl<R: Recipe> fmt::Debug for Reloaded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recipe.fmt(f)
    }
}
