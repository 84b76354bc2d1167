//! The client without a screen, for pipes. Reads the lines that a user would type from standard input and prints
//! messages to standard output, everything else to standard error.

use std::io::{self, BufRead as _, Write as _, stdin, stdout};
use std::thread;

use tokio::sync::mpsc;

use crate::app::App;
use crate::events::{Command, Event, Link, new_id};
use crate::proto::Message;
use crate::proto::watch_response::Event as Watched;
use crate::text::{message_text, sanitize, time_of_day};
use crate::worker::Worker;

/// Runs until the input has ended and all its commands are done. Returns whether all succeeded.
pub(crate) async fn run(
    mut app: App,
    mut worker: Worker,
    password: Option<String>,
    register: bool,
) -> io::Result<bool> {
    let mut lines = lines();
    let (mut at_end, mut all_well) = (false, true);
    let password = match password {
        Some(password) => password,
        None => lines.recv().await.transpose()?.unwrap_or_default(),
    };
    let name = app.form.name.text().to_owned();
    // Fails if the worker has ended, which its events report.
    let _ = worker.commands.send(Command::LogIn { name, password, register });
    loop {
        let is_ready = app.is_logged_in() && app.is_idle();
        if app.ended || at_end && is_ready {
            break;
        }
        let commands = tokio::select! {
            // One at a time: a line after `/create den` is meant for the den.
            line = lines.recv(), if is_ready && !at_end => {
                let Some(line) = line.transpose()? else {
                    at_end = true;
                    continue;
                };
                app.submit(line.trim(), new_id()?)
            }
            event = worker.events.recv() => {
                let Some(event) = event else { break };
                match &event {
                    Event::Watched { event: Watched::Message(message), .. } => print(message)?,
                    // Reported once, not for each try.
                    Event::Link(link @ Link::Waiting(why)) if *link != app.link => {
                        eprintln!("not connected: {}", sanitize(why));
                    }
                    Event::Refused(_) | Event::LoggedOut(_) => app.ended = true,
                    _ => {}
                }
                all_well &= !event.is_failure();
                let logged_in = matches!(event, Event::LoggedIn(_));
                let commands = app.event(event, new_id()?);
                if logged_in {
                    // Clears the list of keys, which is for terminals.
                    app.notice.clear();
                }
                commands
            }
        };
        if !app.notice.is_empty() {
            eprintln!("{}", sanitize(&std::mem::take(&mut app.notice)));
        }
        for command in commands {
            app.ended |= command == Command::LogOut;
            let _ = worker.commands.send(command);
        }
    }
    worker.end().await;
    Ok(all_well)
}

fn print(message: &Message) -> io::Result<()> {
    let Message { room, number, author, sent_ms, .. } = message;
    let (room, author, time) = (sanitize(room), sanitize(author), time_of_day(*sent_ms));
    let mut out = stdout().lock();
    writeln!(out, "{room} {number} {time} {author}: {}", message_text(message))?;
    out.flush()
}

/// Reads lines on a thread, because standard input has no portable asynchronous interface. The thread ends with the
/// process.
fn lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    thread::spawn(move || {
        for line in stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
