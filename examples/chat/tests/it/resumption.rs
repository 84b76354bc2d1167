//! Two clients in terminals, and a server that is killed in between.

use std::fs;

use crate::server::Server;
use crate::terminal::Terminal;

const REGISTER: &str = "\x12";
const LOG_IN: &str = "\r";
const KILLS: usize = 3;
const EACH: usize = 5;

/// Checks both terminals: the same messages, numbered without gaps, each once, in each author's order.
#[track_caller]
fn check(terminals: [&Terminal; 2], expected: &[(&str, Vec<String>)]) {
    let count: usize = expected.iter().map(|(_, texts)| texts.len()).sum();
    for terminal in terminals {
        let last = format!(" {count} ");
        terminal
            .wait(&last, |_| terminal.messages().last().is_some_and(|(number, ..)| *number == count as u64));
        let messages = terminal.messages();
        let numbers: Vec<u64> = messages.iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (1..=count as u64).collect::<Vec<_>>());
        for (author, texts) in expected {
            let of_author: Vec<&String> =
                messages.iter().filter(|(_, by, _)| by == author).map(|(.., text)| text).collect();
            assert_eq!(of_author, texts.iter().collect::<Vec<_>>(), "{author}");
        }
    }
    assert_eq!(terminals[0].messages(), terminals[1].messages());
}

#[test]
fn no_message_is_lost_or_duplicated_when_the_server_is_killed() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), 0);
    let port = server.port;
    let start = || Terminal::start(port, data.path(), &data.path().join("downloads"));
    let (ada, bob) = (start(), start());
    ada.enter("ada", "correct horse", REGISTER);
    bob.enter("bob", "battery staple", REGISTER);
    for terminal in [&ada, &bob] {
        terminal.wait_for("here: 2");
    }

    let mut expected = [("ada", Vec::new()), ("bob", Vec::new())];
    let mut say = |when: String| {
        for at in 0..EACH {
            for (terminal, (author, texts)) in [&ada, &bob].into_iter().zip(&mut expected) {
                let text = format!("{author} {when}, {at}");
                terminal.line(&text);
                texts.push(text);
            }
        }
    };
    for kill in 0..KILLS {
        say(format!("before kill {kill}"));
        // Some messages have arrived, others are in flight.
        bob.wait_for(&format!("ada: ada before kill {kill}, 0"));
        ada.wait_for(&format!("bob: bob before kill {kill}, 0"));
        server.kill();
        say(format!("without a server {kill}"));
        for terminal in [&ada, &bob] {
            terminal.wait_for("not connected");
        }
        server = Server::start(data.path(), port);
        say(format!("after kill {kill}"));
        // Both are connected again before the next kill.
        bob.wait_for(&format!("ada: ada after kill {kill}, {}", EACH - 1));
        ada.wait_for(&format!("bob: bob after kill {kill}, {}", EACH - 1));
    }
    check([&ada, &bob], &expected);
    for terminal in [&ada, &bob] {
        terminal.wait_for("here: 2");
        assert!(!terminal.screen().contains("... sending"), "{}", terminal.screen());
    }

    // A client that logs in later with the same account sees the same messages.
    drop(bob);
    let bob = start();
    bob.enter("bob", "battery staple", LOG_IN);
    check([&ada, &bob], &expected);
}

#[test]
fn file_is_sent_between_terminals() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), 0);
    let downloads = data.path().join("downloads");
    let start = || Terminal::start(server.port, data.path(), &downloads);
    let (ada, bob) = (start(), start());
    ada.enter("ada", "correct horse", REGISTER);
    bob.enter("bob", "battery staple", REGISTER);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    fs::write(data.path().join("photo.raw"), &bytes).unwrap();

    ada.wait_for("here: 2");
    ada.line("/create den");
    ada.wait_for("here: 1");
    ada.line("/send photo.raw");
    ada.wait_for("[file photo.raw, 3.0 MB: /save 1]");
    bob.wait_for("here: 2");
    bob.line("/join den");
    bob.wait_for("[file photo.raw, 3.0 MB: /save 1]");
    for name in ["photo.raw", "photo (1).raw"] {
        bob.line("/save 1");
        bob.wait_for(&format!("saved {}", downloads.join(name).display()));
        assert!(fs::read(downloads.join(name)).unwrap() == bytes, "{name} has other bytes");
    }

    fs::File::create(data.path().join("large.raw")).unwrap().set_len(50 * 1024 * 1024 + 1).unwrap();
    for (line, notice) in [
        ("/send large.raw", "a file may have 52428800 (50 MiB)"),
        ("/send nothing.raw", "failed to read nothing.raw: No such file"),
        ("/save 7", "the number of a message that carries a file"),
        ("/join nowhere", "there is no room \"nowhere\""),
        ("/create den", "there is a room den already"),
    ] {
        bob.line(line);
        bob.wait_for(notice);
    }
    bob.line("/quit");
    bob.wait("form left behind", |screen| !screen.contains("here:"));
}

#[test]
fn failed_login_shows_the_reason() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), 0);
    let start = || Terminal::start(server.port, data.path(), data.path());
    let ada = start();
    ada.enter("ada", "short", REGISTER);
    ada.wait_for("a password has 8 to 128 bytes; this has 5");
    ada.press(" but longer\x12");
    ada.wait_for("here: 1");
    let other = start();
    other.enter("Ada", "correct horse", REGISTER);
    other.wait_for("the name Ada is taken");
    other.press(LOG_IN);
    other.wait_for("the name or the password is wrong");
}
