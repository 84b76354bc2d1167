//! The parts of a service config that calls read: [`ServiceSettings`].

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use thalweg_balance::retry::Throttle;
use thalweg_balance::service_config::{MethodConfig, ServiceConfig};

use crate::method::Method;
use crate::per_thread::PerThread;

/// The settings of calls in the service config that a channel uses at the moment. A resolver may change them.
///
/// Calls of a channel without such settings read one byte.
#[derive(Default)]
pub(crate) struct ServiceSettings {
    /// [`METHODS`], [`THROTTLES`] and [`PENDING`].
    flags: AtomicU8,
    throttle: Throttle,
    /// A copy for each thread, so that they do not contend. Created for the first config with settings of methods.
    configs: OnceLock<PerThread<RwLock<Arc<ServiceConfig>>>>,
}

/// The config has settings of methods.
const METHODS: u8 = 1;
/// Retries are throttled.
const THROTTLES: u8 = 2;
/// The resolver's first config is not known yet.
const PENDING: u8 = 4;

/// The settings are not known yet, because the resolver has not given its first service config.
#[derive(Debug)]
pub(crate) struct NotResolved;

impl ServiceSettings {
    /// Creates settings that wait for the resolver's first config.
    pub(crate) fn pending() -> Self {
        Self { flags: AtomicU8::new(PENDING), ..Self::default() }
    }

    /// Creates the settings of `config`.
    pub(crate) fn of(config: &ServiceConfig) -> Self {
        let settings = Self::default();
        settings.apply(config);
        settings
    }

    /// Replaces the settings. Calls in progress keep theirs.
    pub(crate) fn apply(&self, config: &ServiceConfig) {
        self.throttle.configure(config.retry_throttling);
        let has_methods = !config.method_configs().is_empty();
        if has_methods || self.configs.get().is_some() {
            let own = self.configs.get_or_init(PerThread::default);
            for slot in own.all() {
                *slot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config.clone());
            }
        }
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(has_methods, METHODS) | flag(config.retry_throttling.is_some(), THROTTLES);
        self.flags.store(flags, Ordering::Release);
    }

    /// Returns what `read` returns for the settings of `method`, if it has any.
    #[inline]
    pub(crate) fn of_method<T>(
        &self,
        method: &Method,
        read: impl FnOnce(&MethodConfig) -> T,
    ) -> Result<Option<T>, NotResolved> {
        let flags = self.flags.load(Ordering::Acquire);
        if flags & (METHODS | PENDING) == 0 { Ok(None) } else { self.found(flags, method, read) }
    }

    #[cold]
    fn found<T>(
        &self,
        flags: u8,
        method: &Method,
        read: impl FnOnce(&MethodConfig) -> T,
    ) -> Result<Option<T>, NotResolved> {
        if flags & PENDING != 0 {
            return Err(NotResolved);
        }
        let Some(configs) = self.configs.get() else { return Ok(None) };
        let config = configs.current().read().unwrap_or_else(PoisonError::into_inner);
        Ok(config.method(method.service(), method.name()).map(read))
    }

    /// Returns whether the resolver's first config is not known yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.flags.load(Ordering::Acquire) & PENDING != 0
    }

    /// Returns the throttle of retries, which allows all without a configuration.
    pub(crate) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Notes that a call has succeeded.
    #[inline]
    pub(crate) fn note_success(&self) {
        if self.flags.load(Ordering::Relaxed) & THROTTLES != 0 {
            self.throttle.on_success();
        }
    }
}

impl std::fmt::Debug for ServiceSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceSettings").field("throttle", &self.throttle).finish_non_exhaustive()
    }
}
