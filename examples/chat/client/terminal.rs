//! The terminal: reads keys, draws screens.

use std::io::{self, stdout};
use std::thread;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, KeyEventKind};
use crossterm::execute;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::App;
use crate::events::new_id;
use crate::screen;
use crate::worker::Worker;

/// Runs until the user quits. Restores the terminal, even after a panic.
pub(crate) async fn run(mut app: App, mut worker: Worker) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    execute!(stdout(), EnableBracketedPaste)?;
    let mut keys = keys();
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let outcome = loop {
        if let Err(error) = terminal.draw(|frame| screen::draw(&mut app, frame)) {
            break Err(error);
        }
        let mut commands = Vec::new();
        tokio::select! {
            key = keys.recv() => match key {
                Some(Ok(event::Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    commands = app.key(key, new_id()?);
                }
                Some(Ok(event::Event::Paste(text))) => app.paste(&text),
                // The next screen queries the size.
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            },
            _ = terminate.recv() => break Ok(()),
            _ = hang_up.recv() => break Ok(()),
            Some(event) = worker.events.recv() => {
                commands = app.event(event, new_id()?);
                // Applies queued events before the next screen.
                while let Ok(event) = worker.events.try_recv() {
                    commands.extend(app.event(event, new_id()?));
                }
            }
        }
        for command in commands {
            // Fails if the worker has ended.
            let _ = worker.commands.send(command);
        }
        if app.ended {
            break Ok(());
        }
    };
    let pasted = execute!(stdout(), DisableBracketedPaste);
    ratatui::try_restore()?;
    worker.end().await;
    outcome.and(pasted)
}

/// Reads terminal events on a thread, because reading blocks. The thread ends with the process.
fn keys() -> mpsc::Receiver<io::Result<event::Event>> {
    let (sender, receiver) = mpsc::channel(64);
    thread::spawn(move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if sender.blocking_send(event).is_err() || failed {
                break;
            }
        }
    });
    receiver
}
