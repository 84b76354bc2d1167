//! A test: a run of days has no more memory than one of an hour.

use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use crate::intervals::{AtEnd, Intervals};
use crate::perform::Went;
use crate::tally::{Shards, Times};

const ALONE: &str = "THALWEG_TEST_ALONE";
/// Intervals: beyond 3,600 two become one, and again.
const INTERVALS: u64 = 9_000;
/// Calls in an interval. Of each four times are recorded: latency, service, wait, and the interval's latency.
const CALLS: u64 = 28_000;

/// The pages that this process has in memory, in KiB.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

/// More than 10⁹ recorded times, over three orders of magnitude.
fn record() {
    let shards = Shards::new(1, 1);
    let mut intervals = Intervals::new(Duration::from_secs(1));
    let went = Went { sent: 1, received: 1, ..Went::default() };
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
                shard.count(0, times, &went);
                recorded += 4;
            }
        }
        let recent = shards.take_recent();
        intervals.push(interval * 1_000_000_000, &recent, 1.0, AtEnd { in_flight: 1, connections: 1 });
        match interval {
            // There are as many as there are ever; then two become one for the first time.
            3_590 => at_first = resident_kib(),
            3_591.. if interval % 100 == 0 => most = most.max(resident_kib()),
            _ => {}
        }
    }
    assert!(recorded > 1_000_000_000, "{recorded}");
    assert_eq!(shards.merged().tally.codes().ok(), INTERVALS * CALLS);
    println!("{at_first} KiB after an hour, at the most {most} KiB later");
    assert!(most < at_first + 2048, "{at_first} KiB after an hour, and {most} KiB later");
}

/// Alone in a process: other tests take memory, too.
#[test]
fn a_thousand_million_recorded_times_take_no_more_memory() {
    if env::var_os(ALONE).is_some() {
        return record();
    }
    let name = concat!(module_path!(), "::a_thousand_million_recorded_times_take_no_more_memory");
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}
