//! Stopping when asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user asked to stop. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The exit code of a command that was interrupted.
pub(crate) const EXIT_CODE_INTERRUPTED: u8 = 130;

impl Interrupt {
    /// Asked by SIGINT (Ctrl-C) or SIGTERM. A second one ends the process at once.
    pub fn on_signals() -> std::io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down and raises it, the second finds it up.
            flag::register_conditional_shutdown(
                signal,
                EXIT_CODE_INTERRUPTED.into(),
                Arc::clone(&interrupt.0),
            )?;
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// The same, also by SIGHUP, and further signals change nothing: for who has others to end first, in seconds.
    pub fn on_signals_with_others_to_end() -> std::io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Asks to stop, as a signal would.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
