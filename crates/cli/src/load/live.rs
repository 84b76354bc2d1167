//! Live view of a run on a terminal. Draws on a separate thread so that it does not delay calls.

mod charts;
mod figures;
mod header;
mod history;
mod notes;
mod screen;
mod view;

use std::env;
use std::io::{self, BufWriter, IsTerminal, stdin};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use nix::unistd::{getpgrp, tcgetpgrp};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use thalweg_load::Plan;
use tokio::sync::Notify;

use self::view::View;
use super::notices::Notices;
use super::watching::{RunEvent, Watcher};
use crate::alternate_screen::{self, AlternateScreen};
use crate::failure::INTERRUPTED;
use crate::terminal;

/// Longest wait for keys before checking for other events.
const KEY_POLL_TIMEOUT: Duration = Duration::from_millis(50);
/// Redraw interval.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Buffer size, large enough for a whole screen.
const SCREEN_BYTES: usize = 64 * 1024;

/// Watcher that passes events to the view's thread.
pub(super) struct Live {
    sender: Option<Sender<RunEvent>>,
    thread: Option<JoinHandle<()>>,
    notices: Notices,
}

impl Live {
    /// Returns whether there is an interactive terminal that supports drawing.
    pub(super) fn has_terminal() -> bool {
        let can_draw = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        // A background job would be stopped when it takes the terminal.
        let is_before = || tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        let has = can_draw
            && env::var_os("CI").is_none_or(|ci| ci.is_empty())
            && terminal::stderr_is_terminal()
            && stdin().is_terminal()
            && is_before();
        // Polling opens the key listener's sockets now, so that they are not counted as connections to a server.
        has && event::poll(Duration::ZERO).is_ok()
    }

    /// Enters the screen and starts the thread. `quit` is notified when the user quits.
    pub(super) fn begin(plan: &Plan, quit: &Arc<Notify>, notices: &Notices) -> io::Result<Box<dyn Watcher>> {
        let screen = BufWriter::with_capacity(SCREEN_BYTES, AlternateScreen::take()?);
        let terminal = Terminal::new(CrosstermBackend::new(screen))?;
        let (sender, events) = channel();
        let viewer =
            Viewer { terminal, view: View::new(plan.start_at), quit: quit.clone(), notices: notices.clone() };
        // On an error the terminal is gone; the run continues.
        let thread = thread::Builder::new().spawn(move || drop(viewer.run(&events)))?;
        Ok(Box::new(Self { sender: Some(sender), thread: Some(thread), notices: notices.clone() }))
    }
}

impl Watcher for Live {
    fn on_event(&mut self, event: &RunEvent) {
        // Fails only if the view has ended.
        if let Some(sender) = &self.sender {
            let _ = sender.send(event.clone());
        }
    }

    fn end(&mut self) {
        self.sender = None;
        // The panic is already reported, and the result is kept.
        let _ = self.thread.take().map(JoinHandle::join);
        alternate_screen::leave();
        self.notices.release();
    }
}

/// Draws the view and handles keys.
struct Viewer {
    terminal: Terminal<CrosstermBackend<BufWriter<AlternateScreen>>>,
    view: View,
    quit: Arc<Notify>,
    notices: Notices,
}

impl Viewer {
    fn run(mut self, events: &Receiver<RunEvent>) -> io::Result<()> {
        let mut next = Instant::now();
        loop {
            let is_asked = event::poll(KEY_POLL_TIMEOUT)? && self.event(&event::read()?);
            loop {
                match events.try_recv() {
                    Ok(RunEvent::Begins(running)) => self.view.begins(running),
                    Ok(RunEvent::Interval(interval, running)) => self.view.interval(*interval, running),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
                next = Instant::now();
            }
            if is_asked || (Instant::now() >= next && !self.view.is_paused) {
                self.view.notices = self.notices.buffered();
                self.view.refresh();
                let view = &self.view;
                self.terminal.draw(|frame| screen::draw(view, frame))?;
                next = Instant::now() + REDRAW_INTERVAL;
            }
        }
    }

    /// Returns whether the event requires a redraw.
    fn event(&mut self, event: &Event) -> bool {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Resize(..) => true,
            _ => false,
        }
    }

    /// Returns whether the key has a function.
    fn key(&mut self, key: KeyEvent) -> bool {
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => self.quit(),
            _ if is_interrupt => self.quit(),
            KeyCode::Char('h') => self.view.toggle_histogram(),
            KeyCode::Char('v') => self.view.toggle_charts(),
            KeyCode::Char('p') => self.view.pause(),
            _ => return false,
        }
        true
    }

    /// The first call asks the run to stop; the second exits the process.
    fn quit(&mut self) {
        if self.view.is_ending {
            alternate_screen::leave();
            process::exit(INTERRUPTED.into());
        }
        self.view.is_ending = true;
        self.quit.notify_one();
    }
}
