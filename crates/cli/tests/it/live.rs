//! Tests the live view of a load in a terminal.

use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;

use crate::support::Running;
use crate::terminal::Terminal;

const UNARY: &str = "grpc.testing.TestService/UnaryCall";

fn start(address: &str, rows: u16, columns: u16, arguments: &[&str]) -> Terminal {
    let words = [&["load", address, "--call", UNARY, "-c", "4"], arguments].concat();
    Terminal::start(rows, columns, &words, None)
}

/// Asserts that the terminal is restored after the command.
#[track_caller]
fn check_given_back(terminal: &Terminal) {
    assert!(!terminal.is_alternate() && !terminal.hides_the_cursor(), "{}", terminal.screen());
}

#[test]
fn view_shows_run_and_leaves_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut terminal = start(&addresses[0], 24, 80, &["--rps", "200", "-z", "3s"]);
    // The first interval must end before its rate is shown.
    let rate = |screen: &str| -> Option<f64> {
        let line = screen.lines().find(|line| line.starts_with(" calls/s"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    terminal.wait("figures", |screen| screen.contains("p99 ") && rate(screen).is_some_and(|rate| rate > 0.0));
    assert!(terminal.is_alternate());
    let screen = terminal.screen();
    for text in [
        UNARY,
        &addresses[0],
        "open loop, 200 calls/s",
        "1 connection",
        "calls/s scheduled",
        "latency p50 p90 p99 max",
        "last 1 s",
        "whole run",
        "latency in the last interval",
        "q end ",
    ] {
        assert!(screen.contains(text), "no {text} on this screen:\n{screen}");
    }
    // The rate of each second is close to the schedule's, as far as the machine allows.
    assert!(rate(&screen).is_some_and(|rate| (50.0..400.0).contains(&rate)), "{screen}");
    terminal.press("h");
    terminal.wait_for("latency in the whole run");
    // The screen has room for two of the four charts.
    assert!(!screen.contains("failed/s"), "{screen}");
    terminal.press("v");
    terminal.wait("the other charts", |screen| {
        screen.contains(" in flight connections ")
            && screen.contains(" failed/s ")
            && !screen.contains("calls/s scheduled")
    });
    terminal.press("v");
    terminal.wait_for("calls/s scheduled");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    check_given_back(&terminal);
    let screen = terminal.screen();
    assert!(screen.contains("errors        none"), "{screen}");
    assert!(screen.contains("connections   1 requested, 1 established"), "{screen}");
    assert!(!screen.contains("q end "), "{screen}");
}

#[test]
fn quit_key_interrupts_run_and_stdout_has_only_result() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    for (number, key) in ["q", "\u{1b}", "\u{3}"].into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let words = ["load", &addresses[0], "--call", UNARY, "-z", "10m", "-O", "json"];
        let mut terminal = Terminal::start(24, 80, &words, Some(File::create(&path).unwrap()));
        terminal.wait_for("1 s of 10 min");
        terminal.press(key);
        assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
        check_given_back(&terminal);
        let run: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert!(run["ok"].as_u64().unwrap() > 0, "{run}");
        assert_eq!(run["notes"][0]["text"], "the run was interrupted before its end");
        assert_eq!(run["intervals"][0]["connections"], 1);
    }
}

/// In both cases a call that takes a minute is in flight.
#[test]
fn second_quit_exits_at_once() {
    let (server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let start = || start(&addresses[0], 24, 80, &["-z", "10m", "--timeout", "1m"]);
    let (mut by_keys, mut by_signals) = (start(), start());
    by_keys.wait_for("1 s of 10 min");
    by_signals.wait_for("1 s of 10 min");
    server.signal(Signal::SIGSTOP);
    by_keys.press("q");
    by_keys.wait_for("q quit now");
    by_keys.press("q");
    by_signals.signal(Signal::SIGTERM);
    // Pending signals of the same kind are merged.
    std::thread::sleep(Duration::from_millis(200));
    by_signals.signal(Signal::SIGINT);
    for terminal in [&mut by_keys, &mut by_signals] {
        assert_eq!(terminal.end(), Some(130));
        check_given_back(terminal);
        assert!(!terminal.screen().contains("measured"), "{}", terminal.screen());
    }
    server.signal(Signal::SIGCONT);
}

#[test]
fn view_fits_terminal_size() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"response_status": {"code": 5, "message": "not here"}}"#;
    let mut terminal = start(&addresses[0], 24, 80, &["-z", "10m", "-d", data]);
    terminal.wait_for("the first failed call ended with NOT_FOUND: not here");
    terminal.wait("the count of failures", |screen| {
        screen.lines().any(|line| line.starts_with(" failed: ") && line.trim_end().ends_with(" NOT_FOUND"))
    });
    terminal.resize(40, 120);
    // The right chart's frame ends at the right edge.
    terminal.wait("wide charts", |screen| {
        screen.lines().any(|line| line.chars().count() == 120 && line.ends_with('┐'))
    });
    // All four charts fit.
    for title in [" calls/s ", " latency p50 ", " in flight connections ", " failed/s "] {
        assert!(terminal.screen().contains(title), "{}", terminal.screen());
    }
    terminal.resize(8, 60);
    terminal.wait("one line", |screen| screen.trim().lines().count() == 1 && screen.contains(" failed, "));
    terminal.resize(24, 50);
    terminal.wait_for("latency p50");
    assert!(!terminal.screen().contains("latency in"), "{}", terminal.screen());
    terminal.press("p");
    terminal.wait_for("p go on");
    let screen = terminal.screen();
    assert!(screen.contains(" paused "), "{screen}");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(terminal.screen(), screen);
    terminal.press("p");
    terminal.wait("a later screen", |later| !later.contains(" paused ") && later != screen);
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130));
    check_given_back(&terminal);
}

/// Streams are visible long before one has ended.
#[test]
fn view_shows_streams_in_progress() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let data = r#"{"response_parameters": [{"size": 1}]}"#;
    let words = ["load", &addresses[0], "--call", "grpc.testing.TestService/FullDuplexCall", "-d", data];
    let rate = ["--message-rate", "100", "--stream-for", "10m", "-n", "1", "-c", "1"];
    let mut terminal = Terminal::start(24, 80, &[&words[..], &rate].concat(), None);
    terminal.wait("messages and replies", |screen| {
        let has = |name: &str| {
            let line = screen.lines().find(|line| line.starts_with(name));
            line.is_some_and(|line| {
                line.split_whitespace().any(|word| word.parse::<f64>().is_ok_and(|it| it > 0.0))
            })
        };
        has(" sent ") && has(" received ") && has(" reply p99 ")
    });
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130));
    check_given_back(&terminal);
    let screen = terminal.screen();
    assert!(screen.contains("messages"), "{screen}");
}

#[test]
fn view_shows_tries_of_search_and_steps_of_scenario() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut terminal = start(
        &addresses[0],
        30,
        100,
        &["--find-max", "p99<1h", "--rps", "20", "-z", "1s", "--interval", "200ms"],
    );
    // Other programs may delay the client so that the first rate is not met.
    terminal.wait("a try", |screen| {
        let is_met = screen.contains("highest rate that meets p99<1h: 20") && screen.contains(" met ");
        (is_met || screen.contains("too high")) && screen.contains("now trying ")
    });
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let scenario = format!(
        "name = \"two\"\n[[flow]]\nname = \"both\"\n[[flow.step]]\nname = \"one\"\ncall = \"{UNARY}\"\n\
         [[flow.step]]\nname = \"other\"\ncall = \"{UNARY}\"\n"
    );
    fs::write(&file, scenario).unwrap();
    let words = ["load", &addresses[0], "--scenario", file.to_str().unwrap(), "-z", "10m"];
    let mut terminal = Terminal::start(30, 100, &words, None);
    terminal.wait("steps", |screen| screen.contains(" both, one ") && screen.contains(" both, other "));
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
}

#[test]
fn view_shows_number_of_share() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut terminal = start(&addresses[0], 24, 100, &["--rps", "50", "-n", "400", "--share", "1/4"]);
    terminal.wait_for(" of 100 calls");
    let screen = terminal.screen();
    assert!(screen.contains("open loop, part 1/4 of 50 calls/s"), "{screen}");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
}

#[test]
fn view_shows_awaited_start_time() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600;
    let written = humantime::format_rfc3339(UNIX_EPOCH + Duration::from_secs(at));
    let says = format!("measuring starts at {written}, in ");
    for more in [&[][..], &["--no-tui"]] {
        let at = at.to_string();
        let words = [&["--start-at", &at, "-z", "1s"], more].concat();
        let mut terminal = start(&addresses[0], 24, 100, &words);
        terminal.wait_for(&says);
        assert_eq!(terminal.is_alternate(), more.is_empty());
        // Ctrl-C ends both.
        terminal.press("\u{3}");
        assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    }
}

#[test]
fn no_tui_prints_lines() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let mut terminal = start(&addresses[0], 40, 120, &["-z", "2s", "--no-tui"]);
    terminal.wait("a line", |screen| screen.lines().any(|line| line.contains(" ok  p50 ")));
    assert!(!terminal.is_alternate());
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.screen().contains("errors        none"), "{}", terminal.screen());
}

#[test]
fn view_shows_servers_that_are_not_connected() {
    let (_server, addresses) = Running::serve(&["127.0.0.1:0"]);
    let target = format!("{},127.0.0.1:1", addresses[0]);
    let mut terminal = start(&target, 40, 120, &["--lb", "round_robin", "-z", "10m"]);
    let is_shown =
        |line: &str| line.contains(" 127.0.0.1:1 ") && line.contains(" not connected: failed to connect");
    terminal.wait("the dead server", |screen| screen.lines().any(is_shown));
    terminal.press("q");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    check_given_back(&terminal);
}
