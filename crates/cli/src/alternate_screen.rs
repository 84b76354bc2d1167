//! The alternate screen of the terminal on stderr. Left however the process ends.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use crate::terminal::screen;

/// Whether the alternate screen is on.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Writer to the alternate screen. Discards output after the screen is left.
pub(crate) struct AlternateScreen(());

impl AlternateScreen {
    /// Enters the alternate screen and raw mode. A panic in any thread leaves it before the message is printed.
    pub(crate) fn take() -> io::Result<Self> {
        static ON_PANIC: Once = Once::new();
        ON_PANIC.call_once(|| {
            let previous_hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                previous_hook(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        // From here on `drop` restores everything.
        let taken = Self(());
        execute!(screen(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

/// Leaves the alternate screen if it is on.
pub(crate) fn leave() {
    if TAKEN.swap(false, SeqCst) {
        // Fails only if the terminal is gone.
        let _ = execute!(screen(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

impl Write for AlternateScreen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(SeqCst) { screen().write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        screen().flush()
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        leave();
    }
}
