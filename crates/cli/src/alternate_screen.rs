//! The terminal's other screen, on stderr: taken for a while, and given back however the process ends.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use crate::terminal::screen;

/// Whether it is this process's.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The other screen, to be written to. What is written once it has been given back is lost.
pub(crate) struct AlternateScreen(());

impl AlternateScreen {
    /// Takes it, and keys as they are pressed. A panic of any thread gives it back before it is told.
    pub(crate) fn take() -> io::Result<Self> {
        static ON_PANIC: Once = Once::new();
        ON_PANIC.call_once(|| {
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                told(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        // From here on dropping it gives all back.
        let taken = Self(());
        execute!(screen(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

/// Gives it back, if it was taken.
pub(crate) fn leave() {
    if TAKEN.swap(false, SeqCst) {
        // A terminal that is gone needs nothing back.
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
