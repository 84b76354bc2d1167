use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_measure::size::ByteSize;

use super::*;
use crate::load::{Point, Strategy, Transport};
use crate::peers::PeersDirectory;
use crate::record::CallType;
use crate::record::MethodCall;
use crate::stack::OURS;

/// A fake peer that follows the contract as far as needed. Its server only waits, and its driver reports made-up
/// results.
const FAKE: &str = r#"#!/bin/sh
answer='{"schema":"thalweg.load/3","settings":{"target":"","call":"unary","size_bytes":0,"in_flight":1,"connections":1,
"warmup_ns":0,"duration_ns":1000,"total":null,"cpus":null},"started":"","ended":"","duration_ns":1000,"drain_ns":0,
"closed_loop":true,"rate_per_s":7.0,"calls":7,"messages":7,"errors":{},"bytes_sent":0,"bytes_received":0,
"latency_ns":null,"spikes":[],"histogram":"","client_cpu":{"user_ns":0.0,"system_ns":0.0},"client_cpu_per_call":null,
"connections":{"asked":1,"established":null},"notes":[]}'
here=$(dirname "$0")
command=$1
shift
echo "$command $*" >> "$here/commands"
case $command in
version) echo 'fake 1.2.3' ;;
variants) test -e "$here/drives" || echo 'server plain fancy'; echo 'client plain odd' ;;
settings) printf 'both\tTCP_NODELAY\ton\t\nserver\tthreads\t2\tone for each processor\n' ;;
serve)
    test -e "$here/refuses" && { echo 'no, thank you' >&2; exit 1; }
    echo 'listening on 127.0.0.1:9'
    echo "listening on $4"
    test -e "$here/dies" && exit 3
    trap 'exit 0' TERM
    while :; do sleep 0.02; done ;;
load)
    test -e "$here/fails" && { echo 'connection refused' >&2; exit 1; }
    echo measuring
    echo measured
    echo "$answer" ;;
*) echo "no command $command" >&2; exit 2 ;;
esac
"#;

/// The fake peer in its own folder.
struct Fake(TempDir);

impl Fake {
    fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        let folder = fake.0.path().join("fake");
        fs::create_dir(&folder).unwrap();
        // A separate process writes the program. If this process had it open for writing, a child forked by another
        // test's thread would inherit that descriptor. Starting the program could then fail.
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(folder.join("peer"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdin.take().unwrap().write_all(FAKE.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        fake
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file that makes it misbehave.
    fn told_to(self, file: &str) -> Self {
        fs::write(self.folder().join("fake").join(file), "").unwrap();
        self
    }

    /// Returns the commands it was started with.
    fn commands(&self) -> String {
        fs::read_to_string(self.folder().join("fake/commands")).unwrap_or_default()
    }

    fn program(&self) -> Program {
        PeersDirectory::at(self.folder()).program("fake").unwrap()
    }

    /// Returns an executor that knows the fake under this name.
    fn executor(&self, name: &str) -> ProcessExecutor {
        let programs = BTreeMap::from([(name.to_owned(), self.program())]);
        ProcessExecutor::new(programs, CpuAssignment::halves().unwrap(), Interrupt::default())
    }
}

fn window(stack: &str) -> Window {
    let point = Point {
        work: Work::Call(CallType::Unary),
        size_bytes: ByteSize(0),
        transport: Transport::Uds,
        in_flight: 1,
        connections: 1,
        active: None,
        tls: false,
        round_trip: Duration::ZERO,
        warmup: Duration::from_millis(2),
        duration: Duration::from_millis(10),
    };
    Window::of_figures(point, Some(Pair::own(stack.parse().unwrap())), None)
}

fn failure(found: Result<MeasuredLoad, ExecuteError>) -> String {
    match found {
        Err(ExecuteError::Window(reason)) => reason,
        other => panic!("the window alone was to fail: {other:?}"),
    }
}

#[test]
fn peer_without_server_does_not_serve() {
    let fake = Fake::new();
    assert!(fake.program().serves);
    let program = fake.told_to("drives").program();
    assert!(!program.serves && program.server_variants.is_empty());
    assert_eq!(program.client_variants, ["plain", "odd"]);
}

#[test]
fn peer_reports_version_settings_and_variants() {
    let fake = Fake::new();
    let program = fake.program();
    assert_eq!(program.version, "fake 1.2.3");
    assert_eq!(program.server_variants, ["plain", "fancy"]);
    let settings = program.settings(None, &CpuAssignment::default()).unwrap();
    let settings: Vec<_> = settings.iter().map(|it| (it.side.as_str(), it.value.as_str())).collect();
    assert_eq!(settings, [("both", "on"), ("server", "2")]);
    let check = |stack: &str, serves, drives| program.check_variant(&stack.parse().unwrap(), serves, drives);
    assert_eq!(check("fake", true, true), Ok(()));
    assert_eq!(check("fake:fancy", true, false), Ok(()));
    assert_eq!(check("fake:odd", false, true), Ok(()));
    let unknown = check("fake:odd", true, false).unwrap_err().to_string();
    assert!(unknown.contains("`odd`") && unknown.contains("plain, fancy"), "{unknown}");
    assert!(check("fake:new", true, true).is_err());
}

#[test]
fn window_is_driven_by_contract_and_observed_from_outside() {
    let fake = Fake::new();
    let mut executor = fake.executor("fake");
    let measured = executor.run(&window("fake")).unwrap();
    assert_eq!(measured.load.messages, 7);
    assert_eq!(measured.load.settings.cpus.as_ref(), executor.cpus.client_cpus.as_ref());
    // Nothing connected, and the kernel's tables show it.
    assert_eq!(measured.load.connections.established, Some(0));
    assert!(
        measured.load.notes[0].text.starts_with("connections: 1 requested, 0"),
        "{:?}",
        measured.load.notes
    );
    assert!(measured.usage.unwrap().window_ns > 0);

    let commands = fake.commands();
    let load = commands.lines().find(|line| line.starts_with("load ")).unwrap();
    assert!(load.starts_with("load unix:/"), "{load}");
    for flag in [
        "--call unary",
        "--size 0",
        "-c 1",
        "--connections 1",
        "--warmup 2000us",
        "-z 10000us",
        "--timeout 5000000us",
        "-O json",
        "--announce",
    ] {
        assert!(load.contains(flag), "{flag}: {load}");
    }
    assert!(!commands.contains("--variant"), "{commands}");
}

#[test]
fn driver_gets_lanes_and_threads_unless_default() {
    let fake = Fake::new();
    let mut executor = fake.executor("fake");
    executor.cpus.client_threads = Some(3);
    executor.cpus.server_threads = Some(2);
    for (strategy, lanes) in [(Strategy::Adaptive, 1), (Strategy::Fixed(4), 1), (Strategy::PerCall, 1)] {
        let mut window = window("fake");
        window.strategy = Some(strategy);
        window.point.connections = lanes;
        executor.run(&window).unwrap();
    }
    let commands = fake.commands();
    let loads: Vec<&str> = commands.lines().filter(|line| line.starts_with("load ")).collect();
    assert!(loads[0].ends_with("--lanes adaptive --threads 3"), "{commands}");
    assert!(loads[1].ends_with("--announce --threads 3"), "{commands}");
    assert!(loads[2].ends_with("--lanes per-call --threads 3"), "{commands}");
    let served = commands.lines().find(|line| line.starts_with("serve")).unwrap();
    assert!(served.ends_with("--threads 2"), "{served}");
}

#[test]
fn driver_uses_hop_for_delay_or_wire_watching() {
    let fake = Fake::new();
    let mut executor = fake.executor("fake");
    let mut near = window("fake");
    near.point.transport = Transport::Tcp;
    let mut far = near.clone();
    far.point.round_trip = Duration::from_millis(1);
    for window in [&near, &far, &far] {
        executor.run(window).unwrap();
    }
    let wire = executor.watch_wire(&Window { purpose: Purpose::Wire, ..near }).unwrap();
    assert_eq!((wire.sent_bytes, wire.all.gaps), (0, 0), "the fake moves nothing");
    let commands = fake.commands();
    let target = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
    let targets: Vec<String> =
        commands.lines().filter(|line| line.starts_with("load ")).map(target).collect();
    assert_eq!(targets[0], "127.0.0.1:9", "it listens there, it says");
    assert!(targets[1] != targets[0] && targets[1].starts_with("127.0.0.1:"), "{targets:?}");
    assert_eq!(targets[1], targets[2], "one network serves all windows");
    assert!(targets[3] != targets[0] && targets[3] != targets[1], "{targets:?}");
}

#[test]
fn target_failing_at_first_ends_the_study() {
    let method = MethodCall { path: "/a.B/C".to_owned(), request: vec![1, 255] };
    let at = |fake: &Fake| {
        let cpus = CpuAssignment { client_threads: Some(2), ..CpuAssignment::default() };
        let target = "10.0.0.1:50051".to_owned();
        TargetExecutor::new(fake.program(), target, method.clone(), cpus, Interrupt::default())
    };
    let mut window = window("fake");
    window.strategy = Some(Strategy::Fixed(1));
    let fake = Fake::new();
    let WindowMeasurement::Figures(measured) = at(&fake).measure(&window).unwrap() else {
        panic!("it was asked for figures")
    };
    assert_eq!((measured.load.messages, measured.usage), (7, None));
    let commands = fake.commands();
    let load = commands.lines().find(|line| line.starts_with("load ")).unwrap();
    assert!(load.starts_with("load 10.0.0.1:50051 "), "{load}");
    assert!(load.ends_with("--method /a.B/C --hex 01ff --threads 2"), "{load}");
    let fake = Fake::new().told_to("fails");
    assert_eq!(at(&fake).measure(&window), Err(ExecuteError::Study("connection refused".to_owned())));
}

#[test]
fn variant_is_passed_to_the_side_that_supports_it() {
    let check = |stack: &str, serve: bool, load: bool| {
        let fake = Fake::new();
        fake.executor("fake").run(&window(stack)).unwrap();
        let commands = fake.commands();
        let has_variant = |word| commands.lines().any(|l| l.starts_with(word) && l.contains("--variant"));
        assert_eq!((has_variant("serve"), has_variant("load")), (serve, load), "{stack}: {commands}");
    };
    check("fake:fancy", true, false);
    check("fake:odd", false, true);
    check("fake:plain", true, true);
}

#[test]
fn one_server_serves_all_windows_and_a_second_one_the_noise_floor() {
    let fake = Fake::new();
    let mut executor = fake.executor("fake");
    executor.serve(&"fake".parse().unwrap()).unwrap();
    for purpose in [Purpose::Figures, Purpose::NoiseFloor(AaSide::A), Purpose::NoiseFloor(AaSide::B)] {
        executor.run(&Window { purpose, ..window("fake") }).unwrap();
    }
    let served = fake.commands().lines().filter(|line| line.starts_with("serve")).count();
    assert_eq!(served, 2);
}

#[test]
fn failed_driver_fails_window_with_its_stderr() {
    let fake = Fake::new().told_to("fails");
    let mut executor = fake.executor("fake");
    assert_eq!(failure(executor.run(&window("fake"))), "connection refused");
}

#[test]
fn server_start_failure_includes_its_stderr() {
    let fake = Fake::new().told_to("refuses");
    let error = fake.executor("fake").serve(&"fake".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("fake/peer serve") && error.contains("no, thank you"), "{error}");
}

/// Waits until the server of the executor's only stack has exited.
fn until_it_ended(executor: &mut ProcessExecutor) {
    for server in executor.servers.all_serving() {
        while !server.has_exited() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn exited_server_is_restarted_once() {
    let fake = Fake::new().told_to("dies");
    let mut executor = fake.executor("fake");
    executor.serve(&"fake".parse().unwrap()).unwrap();
    until_it_ended(&mut executor);
    // The fake driver needs no server, so the window either succeeds or fails because the server is gone.
    let _ = executor.run(&window("fake"));
    until_it_ended(&mut executor);
    let reason = failure(executor.run(&window("fake")));
    assert!(reason.contains("the server exited") && reason.contains("repeatedly"), "{reason}");
    assert_eq!(failure(executor.run(&window("fake"))), reason, "it is not tried a third time");
}

#[test]
fn exit_of_our_server_ends_the_study() {
    let fake = Fake::new().told_to("dies");
    let mut executor = fake.executor(OURS);
    executor.serve(&Stack::ours()).unwrap();
    until_it_ended(&mut executor);
    let found = executor.run(&window(OURS));
    assert!(
        matches!(&found, Err(ExecuteError::Study(why)) if why.contains("the server exited")),
        "{found:?}"
    );
}

#[test]
fn interrupt_stops_the_window() {
    let fake = Fake::new();
    let mut executor = fake.executor("fake");
    executor.interrupt.request();
    assert_eq!(executor.run(&window("fake")), Err(ExecuteError::Interrupted));
}

#[test]
fn system_calls_are_counted_or_failure_has_reason() {
    let fake = Fake::new();
    let found =
        fake.executor("fake").count_system_calls(&Window { purpose: Purpose::SystemCalls, ..window("fake") });
    // The fake always reports seven operations, so the difference is zero. Elsewhere strace is missing or not
    // permitted.
    assert!(matches!(&found, Err(ExecuteError::Window(reason)) if !reason.is_empty()), "{found:?}");
}

#[test]
fn missing_program_is_an_error() {
    let programs = BTreeMap::from([(OURS.to_owned(), Program::ours("/nonexistent/thalweg".into()))]);
    let error = ProcessExecutor::new(programs, CpuAssignment::halves().unwrap(), Interrupt::default())
        .serve(&Stack::ours())
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent/thalweg"), "{error}");
}
