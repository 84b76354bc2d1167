//! Graceful stop on signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag for a requested stop. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// Exit code of an interrupted command.
pub const EXIT_CODE_INTERRUPTED: u8 = 130;

impl Interrupt {
    /// Creates a flag that SIGINT (Ctrl-C) and SIGTERM set. A second signal exits the process immediately.
    ///
    /// # Errors
    ///
    /// Returns an error if a signal handler cannot be registered.
    pub fn on_signals() -> std::io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal must see the flag unset, and then set it.
            flag::register_conditional_shutdown(
                signal,
                EXIT_CODE_INTERRUPTED.into(),
                Arc::clone(&interrupt.0),
            )?;
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Creates a flag that SIGINT, SIGTERM and SIGHUP set. Further signals have no effect.
    ///
    /// Use it if the process needs a few seconds to stop its children first.
    ///
    /// # Errors
    ///
    /// Returns an error if a signal handler cannot be registered.
    pub fn on_signals_with_others_to_end() -> std::io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Requests a stop, like a signal.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop has been requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
