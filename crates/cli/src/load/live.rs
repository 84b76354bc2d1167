//! The view of a run, on the terminal before which somebody sits. On a thread of its own, as all that watches is: what
//! it draws is not in the way of calls.

mod below;
mod charts;
mod figures;
mod header;
mod history;
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
use super::watching::{Told, Watcher};
use crate::alternate_screen::{self, AlternateScreen};
use crate::failure::INTERRUPTED;
use crate::terminal;

/// Keys are waited for so long, before it is looked whether anything else has come.
const LOOK: Duration = Duration::from_millis(50);
/// The time goes on so often.
const TICK: Duration = Duration::from_millis(250);
/// A whole screen goes out at once.
const SCREEN_BYTES: usize = 64 * 1024;

/// The view, as it is told of the run.
pub(super) struct Live {
    told: Option<Sender<Told>>,
    thread: Option<JoinHandle<()>>,
    notices: Notices,
}

impl Live {
    /// Whether there is a terminal for it: one that can be drawn on, with somebody before it.
    pub(super) fn has_a_terminal() -> bool {
        let can_draw = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        // A job in the background is stopped when it takes the terminal.
        let is_before = || tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        let has = can_draw
            && env::var_os("CI").is_none_or(|ci| ci.is_empty())
            && terminal::stderr_is_terminal()
            && stdin().is_terminal()
            && is_before();
        // What listens for keys has sockets, which are no connections to a server: they are there from now on.
        has && event::poll(Duration::ZERO).is_ok()
    }

    /// Takes the screen. `quit` is told when the user has seen enough.
    pub(super) fn begin(plan: &Plan, quit: &Arc<Notify>, notices: &Notices) -> io::Result<Box<dyn Watcher>> {
        let screen = BufWriter::with_capacity(SCREEN_BYTES, AlternateScreen::take()?);
        let terminal = Terminal::new(CrosstermBackend::new(screen))?;
        let (told, tells) = channel();
        let viewer =
            Viewer { terminal, view: View::new(plan.start_at), quit: quit.clone(), notices: notices.clone() };
        // An error, of a terminal that has gone: nobody sees it any more, and the run goes on.
        let thread = thread::Builder::new().spawn(move || drop(viewer.until_the_end(&tells)))?;
        Ok(Box::new(Self { told: Some(told), thread: Some(thread), notices: notices.clone() }))
    }
}

impl Watcher for Live {
    fn told(&mut self, told: &Told) {
        // A view that is gone misses nothing.
        if let Some(sender) = &self.told {
            let _ = sender.send(told.clone());
        }
    }

    fn end(&mut self) {
        self.told = None;
        // A panic has been said, and is no reason to lose the result.
        let _ = self.thread.take().map(JoinHandle::join);
        alternate_screen::leave();
        self.notices.release();
    }
}

/// Draws, and listens for keys.
struct Viewer {
    terminal: Terminal<CrosstermBackend<BufWriter<AlternateScreen>>>,
    view: View,
    quit: Arc<Notify>,
    notices: Notices,
}

impl Viewer {
    fn until_the_end(mut self, tells: &Receiver<Told>) -> io::Result<()> {
        let mut next = Instant::now();
        loop {
            let is_asked = event::poll(LOOK)? && self.event(&event::read()?);
            loop {
                match tells.try_recv() {
                    Ok(Told::Begins(running)) => self.view.begins(running),
                    Ok(Told::Interval(interval, running)) => self.view.interval(*interval, running),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
                next = Instant::now();
            }
            if is_asked || (Instant::now() >= next && !self.view.is_paused) {
                self.view.notices = self.notices.held();
                self.view.look();
                let view = &self.view;
                self.terminal.draw(|frame| screen::draw(view, frame))?;
                next = Instant::now() + TICK;
            }
        }
    }

    /// Whether the screen is another one by it.
    fn event(&mut self, event: &Event) -> bool {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Resize(..) => true,
            _ => false,
        }
    }

    /// Whether it is one that says something.
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

    /// The first time it asks, the second time it tells.
    fn quit(&mut self) {
        if self.view.is_ending {
            alternate_screen::leave();
            process::exit(INTERRUPTED.into());
        }
        self.view.is_ending = true;
        self.quit.notify_one();
    }
}
