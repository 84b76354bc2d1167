//! Tests that the memory of a run, and of one stream, does not grow with its duration.

use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{env, fs};

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};

use crate::call_outcome::CallOutcome;
use crate::form::Source;
use crate::intervals::{IntervalEnd, Intervals};
use crate::progress::Progress;
use crate::stream::{Messages, Receiver, Rules, Sender};
use crate::tally::{Shards, StepOfFlow, Times};
use crate::traffic::Traffic;
use crate::worker_counters::WorkerCounters;

const ALONE: &str = "THALWEG_TEST_ALONE";
/// Intervals of the run. Beyond 3,600, pairs of intervals are merged, repeatedly.
const INTERVALS: u64 = 9_000;
/// Calls per interval. Each records four times: latency, service, wait, and the interval's latency.
const CALLS: u64 = 28_000;
/// Messages of one stream. Keeping a time for each would take 160 MB.
const MESSAGES: u64 = 20_000_000;

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

/// Records more than 10⁹ times, over three orders of magnitude.
fn record() {
    let shards = Shards::new(1, 1, true, true);
    let mut intervals = Intervals::new(Duration::from_secs(1), false);
    let traffic = Traffic { sent: 1, received: 1, ..Traffic::default() };
    let outcome = CallOutcome { traffic, ..CallOutcome::default() };
    let step = StepOfFlow { index: 0, is_first: true, is_last: true };
    let (mut recorded, mut at_first, mut most) = (0_u64, 0, 0);
    let mut random = crate::arrivals::Random(1);
    for interval in 0..INTERVALS {
        {
            let mut shard = shards.own();
            for call in 0..CALLS {
                let intended_ns = (interval * CALLS + call) * 1000;
                let began_ns = intended_ns + random.next() % 5_000;
                let took_ns = 1 << (10 + random.next() % 10);
                let times = Times { intended_ns, began_ns, ended_ns: began_ns + took_ns + call % 1000 };
                shard.count(step, times, &outcome);
                recorded += 4;
            }
        }
        let recent = shards.take_recent();
        intervals.push(interval * 1_000_000_000, &recent, 1.0, IntervalEnd { in_flight: 1, connections: 1 });
        match interval {
            // The number of intervals is at its maximum; they are merged for the first time soon after.
            3_590 => at_first = resident_kib(),
            3_591.. if interval % 100 == 0 => most = most.max(resident_kib()),
            _ => {}
        }
    }
    assert!(recorded > 1_000_000_000, "{recorded}");
    assert_eq!(shards.merged().tally.codes().ok(), INTERVALS * CALLS);
    println!("{at_first} KiB after an hour, at most {most} KiB later");
    // Merged histograms have more buckets in use, 1.9 MiB of them. Keeping all intervals would take 6.2 MiB.
    assert!(most < at_first + 3072, "{at_first} KiB after an hour, and {most} KiB later");
}

/// The same message, endlessly.
struct Endless(Raw);

impl Source for Endless {
    type Request = Raw;

    fn next(&mut self) -> Option<Result<(&Raw, u64), String>> {
        Some(Ok((&self.0, self.0.0.len() as u64)))
    }
}

/// One bidi stream whose server responds to every second message, so half of them never get a response.
fn stream() {
    let shards = Arc::new(Shards::new(1, 1, false, true));
    let progress = Arc::new(Progress::default());
    let counters = WorkerCounters {
        shards: shards.clone(),
        base: Instant::now(),
        from_ns: 0,
        messages_left: None,
        stopped: Arc::default(),
        progress,
        by_server: None,
    };
    let rules = Rules { is_paired: true, ..Rules::default() };
    let stream = Arc::new(Messages::new(&Arc::new(counters), &(0..u64::MAX), rules));
    let source = Endless(Raw(Bytes::from_static(b"message")));
    let mut requests = Sender::new(source, &stream, u64::MAX, None, false);
    let mut received = Receiver::new(&stream, false);
    let mut cx = Context::from_waker(Waker::noop());
    let mut at_first = 0;
    for message in 0..MESSAGES {
        assert!(matches!(Pin::new(&mut requests).poll_next(&mut cx), Poll::Ready(Some(_))));
        if message % 2 == 1 {
            received.push(3);
        }
        if message == MESSAGES / 20 {
            at_first = resident_kib();
        }
    }
    let at_last = resident_kib();
    drop((requests, received));
    let tally = shards.merged().tally;
    let expected = Traffic {
        sent: MESSAGES,
        bytes_sent: 7 * MESSAGES,
        received: MESSAGES / 2,
        bytes_received: 3 * MESSAGES / 2,
    };
    assert_eq!(tally.traffic, expected);
    assert_eq!(tally.first.len(), 1);
    assert!((1..=MESSAGES / 2).contains(&tally.replies.len()), "{}", tally.replies.len());
    println!("{at_first} KiB after a twentieth of the messages, {at_last} KiB after all");
    assert!(at_last < at_first + 2048, "{at_first} KiB, and then {at_last} KiB");
}

#[test]
fn billion_recorded_times_use_constant_memory() {
    alone("billion_recorded_times_use_constant_memory", record);
}

#[test]
fn messages_of_one_stream_use_constant_memory() {
    alone("messages_of_one_stream_use_constant_memory", stream);
}

/// Runs the test in its own process, since other tests use memory too.
fn alone(test: &str, does: fn()) {
    if env::var_os(ALONE).is_some() {
        return does();
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::{test}");
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}
