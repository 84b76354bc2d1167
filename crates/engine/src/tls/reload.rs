//! A configuration that follows the files that it was read from.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::TlsError;
use super::identity::Changes;

/// How a configuration of rustls is made: from what was read, which can be compared.
pub(super) trait Recipe: fmt::Debug + Send + Sync + 'static {
    type Material: PartialEq + Send;
    type Config: Send + Sync;

    /// Reads all files there are.
    fn read(&self) -> Result<Self::Material, TlsError>;

    /// Builds from what was read. `former` is what is in use, if anything is.
    fn build(
        &self,
        material: &Self::Material,
        former: Option<(&Self::Material, &Self::Config)>,
    ) -> Result<Self::Config, TlsError>;

    /// What may be another next time.
    fn may_change(&self) -> Changes;

    /// How often files are looked at.
    fn interval(&self) -> Duration;
}

/// How often files are looked at, unless a configuration says otherwise: often enough for a renewal, which comes days
/// before the old certificate ends, and some 50 µs each time.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// A configuration, and what it was built from. There is no task: who begins a connection looks whether it is time.
pub(super) struct Reloaded<R: Recipe> {
    recipe: R,
    current: Mutex<Current<R>>,
}

struct Current<R: Recipe> {
    material: R::Material,
    config: Arc<R::Config>,
    changes: Changes,
    looked_at: Instant,
}

impl<R: Recipe> Reloaded<R> {
    pub(super) fn new(recipe: R) -> Result<Self, TlsError> {
        let changes = recipe.may_change();
        let material = recipe.read()?;
        let config = Arc::new(recipe.build(&material, None)?);
        let current = Current { material, config, changes, looked_at: Instant::now() };
        Ok(Self { recipe, current: Mutex::new(current) })
    }

    /// The configuration for a connection that begins now.
    pub(super) fn config(&self) -> Arc<R::Config> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.recipe.may_change();
        let is_due = changes.has_files && current.looked_at.elapsed() >= self.recipe.interval();
        if changes.version != current.changes.version || is_due {
            current.changes = changes;
            current.looked_at = Instant::now();
            if let Err(error) = self.renew(&mut current) {
                tracing::warn!(%error, "certificates are not renewed; the former ones stay in use");
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
            tracing::info!("certificates have been renewed");
        }
        Ok(())
    }
}

impl<R: Recipe> fmt::Debug for Reloaded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recipe.fmt(f)
    }
}
