//! Calls to a fleet of three servers while one of them is dead, silent or slow, or while all of them restart.
//!
//! All clients call our servers. [`SECONDS`] and [`RESTARTS`] are environment variables for longer runs.

mod client;
mod servers;

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use self::client::{Calls, Client, Policy};
use self::servers::{Fleet, Stop, Third};
use super::table::{Table, grouped, three_digits};
use crate::failure::Result;
use crate::peers::BuiltPeer;
use crate::test::rust;

pub(super) const PEERS: &[&str] = &["thalweg", "thalweg-tonic", "tonic", "grpc-go"];

/// Seconds of calling in each case without restarts; 10 by default.
const SECONDS: &str = "THALWEG_FLEET_SECONDS";
/// Restarts in each case that has them; 30 by default.
const RESTARTS: &str = "THALWEG_FLEET_RESTARTS";
/// Time from a client's start to the first restart, and from the last one to the client's end.
const LEAD: Duration = Duration::from_millis(500);

/// Time from the restart of a server to that of the next one. gRPC's clients try again after at most 1.2 s if their
/// first attempt to connect has failed.
const APART: Duration = Duration::from_millis(1500);

/// An event, and the policies of the clients that experience it.
struct Case {
    name: &'static str,
    event: Event,
    policies: &'static [Policy],
}

#[derive(Clone, Copy)]
enum Event {
    /// The third server is in this state all the time.
    Third(Third),
    /// The servers restart one after the other, with this pause.
    Restarts(Stop, Duration),
}

const CASES: &[Case] = &[
    case("nothing happens", Event::Third(Third::Up), DEFAULT),
    case("one server refuses connections", Event::Third(Third::Refuses), DEFAULT),
    case("one server drops packets", Event::Third(Third::DropsPackets), DEFAULT),
    case("one server accepts and never speaks", Event::Third(Third::NeverSpeaks), DEFAULT),
    case("one server is 20 times slower", Event::Third(Third::Slow), AGAINST_SLOW),
    case("SIGTERM, restarts 1.5 s apart", Event::Restarts(Stop::Terminate, APART), DEFAULT),
    case("SIGKILL, restarts 1.5 s apart", Event::Restarts(Stop::Kill, APART), WITH_RETRIES),
    // Faster than gRPC's backoff: soon its clients wait before they connect to any of the servers.
    case("SIGTERM, restarts without pause", Event::Restarts(Stop::Terminate, Duration::ZERO), WITH_RETRIES),
];

const DEFAULT: &[Policy] = &[Policy::Default];
const WITH_RETRIES: &[Policy] = &[Policy::Default, Policy::Retries];
const AGAINST_SLOW: &[Policy] = &[Policy::Default, Policy::LeastRequest, Policy::Hedging];

const fn case(name: &'static str, event: Event, policies: &'static [Policy]) -> Case {
    Case { name, event, policies }
}

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let bench = FleetBench {
        server: rust::release_command()?,
        seconds: Duration::from_secs(variable(SECONDS, 10)?),
        restarts: variable(RESTARTS, 30)?,
    };
    let clients = peers.iter().map(Client::new).collect::<Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for case in CASES {
        for client in &clients {
            for &policy in case.policies.iter().filter(|policy| client.has(**policy)) {
                let name = client.name(policy);
                eprintln!("{}: {name}", case.name);
                let calls = bench.calls(case.event, client, policy)?;
                // Too long for a table.
                for failed in &calls.failures {
                    eprintln!("  {} × {}, the first: {}", failed.count, failed.code, failed.example);
                }
                rows.push(row(case, name, &calls));
            }
        }
    }
    let title = format!(
        "Unary calls of 16 callers, with pauses of 1 ms and a deadline of 20 s, to three servers of Thalweg for {} s, \
         or for {} restarts, one after the other; client on core 0, servers on core 1. After a failed call the caller \
         makes the next one. Times are of all calls, failed ones too:",
        bench.seconds.as_secs(),
        bench.restarts
    );
    let columns = ["case", "client", "calls", "failed", "> 1 s", "p50, ms", "p99, ms", "max, ms"];
    Ok(vec![Table::new(title, columns, rows)])
}

/// Returns the number in an environment variable.
fn variable<T: FromStr>(name: &str, default: T) -> Result<T> {
    match env::var(name) {
        Err(_) => Ok(default),
        Ok(text) => text.parse().map_err(|_| misuse!("invalid {name}: `{text}`; use a number")),
    }
}

struct FleetBench {
    server: PathBuf,
    seconds: Duration,
    restarts: usize,
}

impl FleetBench {
    /// Returns the calls that the client makes during the event.
    fn calls(&self, event: Event, client: &Client, policy: Policy) -> Result<Calls> {
        let third = match event {
            Event::Third(third) => third,
            Event::Restarts(..) => Third::Up,
        };
        let mut fleet = Fleet::start(&self.server, third)?;
        let calling = client.start(&fleet.addresses(), policy)?;
        match event {
            Event::Third(_) => thread::sleep(self.seconds),
            Event::Restarts(stop, apart) => {
                thread::sleep(LEAD);
                for number in 0..self.restarts {
                    fleet.restart(number, stop)?;
                    thread::sleep(apart);
                }
                thread::sleep(LEAD);
            }
        }
        calling.end()
    }
}

fn row(case: &Case, client: String, calls: &Calls) -> Vec<String> {
    let count = |number: u64| grouped(number as f64);
    let ms = |us: f64| three_digits(us / 1e3);
    let total = calls.ok + calls.failed;
    let [p50, p99, max] = [calls.p50_us, calls.p99_us, calls.max_us].map(ms);
    vec![case.name.to_owned(), client, count(total), count(calls.failed), count(calls.slow), p50, p99, max]
}
