//! Calls to a fleet of three servers while one of them is dead, silent, slow or failing, or while all of them restart.
//!
//! All clients call our servers. [`SECONDS`] and [`RESTARTS`] are environment variables for shorter or longer runs.

mod client;
mod namespace;
mod servers;

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use self::client::{By, Calls, Client, Load, Policy};
use self::servers::{Fleet, Stop, Third};
use super::table::{Table, grouped, three_digits};
use crate::failure::{Failure, Result};
use crate::peers::BuiltPeer;
use crate::test::rust;

pub(super) const PEERS: &[&str] = &["thalweg", "thalweg-tonic", "tonic", "grpc-go"];

/// Seconds of calling in each case without restarts; 10 by default.
const SECONDS: &str = "THALWEG_FLEET_SECONDS";
/// Restarts in each case that has them; 1,000 by default.
const RESTARTS: &str = "THALWEG_FLEET_RESTARTS";
/// Time from a client's start to the first event, and from the last restart to the client's end.
const LEAD: Duration = Duration::from_millis(500);

/// Time for a client to find a silent server by keepalive: 10 s, the least of gRPC, and 2 s.
const KEEPALIVE_LIMIT: Duration = Duration::from_secs(13);
/// Time for a client to call a server again that is back. gRPC's clients try again after at most 1.2 s, then after
/// 1.6 times as long each time.
const BACK_LIMIT: Duration = Duration::from_secs(30);
/// The same for a client with one connection, which calls the server only by chance.
const UNBALANCED_LIMIT: Duration = Duration::from_millis(100);
/// Time of calling by a name with a silent address, which concerns the first calls only.
const FIRST_CALLS: Duration = Duration::from_secs(2);

/// An event, and the clients that experience it.
struct Case<E> {
    name: &'static str,
    event: E,
    policies: &'static [Policy],
    by: &'static [By],
}

const fn case<E>(name: &'static str, event: E, policies: &'static [Policy]) -> Case<E> {
    Case { name, event, policies, by: &[By::List] }
}

/// Cases with a third server in this state, one client after the other.
const TROUBLES: &[Case<Third>] = &[
    case("nothing happens", Third::Up, DEFAULT),
    case("one server refuses connections", Third::Refuses, DEFAULT),
    case("one server's packets are dropped", Third::DropsPackets, DEFAULT),
    case("one server accepts and never speaks", Third::NeverSpeaks, DEFAULT),
    case("one server falls silent", Third::FallsSilent, WITH_RETRIES),
    case("one server fails every second call", Third::Fails, AGAINST_FAILING),
    case("one server is 20 times slower", Third::Slow, AGAINST_SLOW),
    Case { by: &[By::SilentName], ..case("the name's first address is silent", Third::Up, BY_NAME) },
];

/// Cases in which the servers restart one after the other, all clients at the same time.
const RESTARTING: &[Case<Restarts>] = &[
    Case { by: &[By::List, By::Name], ..case("SIGTERM, rolling", rolling(Stop::Terminate), DEFAULT) },
    case("SIGKILL, rolling", rolling(Stop::Kill), WITH_RETRIES),
    // Faster than gRPC's backoff: soon its clients wait before they connect to any of the servers.
    case("SIGTERM, without waiting", hasty(Stop::Terminate), WITH_RETRIES),
    case("SIGKILL, without waiting", hasty(Stop::Kill), WITH_RETRIES),
];

#[derive(Clone, Copy)]
struct Restarts {
    stop: Stop,
    /// Whether the next server stops only after the client has called the last one again.
    is_rolling: bool,
}

const fn rolling(stop: Stop) -> Restarts {
    Restarts { stop, is_rolling: true }
}

const fn hasty(stop: Stop) -> Restarts {
    Restarts { stop, is_rolling: false }
}

const DEFAULT: &[Policy] = &[Policy::RoundRobin];
const WITH_RETRIES: &[Policy] = &[Policy::RoundRobin, Policy::Retries];
const BY_NAME: &[Policy] = &[Policy::RoundRobin, Policy::PickFirst];
const AGAINST_FAILING: &[Policy] = &[Policy::RoundRobin, Policy::OutlierDetection, Policy::Retries];
const AGAINST_SLOW: &[Policy] = &[
    Policy::RoundRobin,
    Policy::WeightedRoundRobin,
    Policy::LeastRequest,
    Policy::PickFirst,
    Policy::Hedging,
];

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let bench = FleetBench {
        server: rust::release_example("thalweg-load", "fleet_server")?,
        seconds: Duration::from_secs(variable(SECONDS, 10)?),
        restarts: variable(RESTARTS, 1000)?,
        fleets: AtomicU8::new(0),
    };
    let clients = peers.iter().map(Client::of).collect::<Result<Vec<_>>>()?;
    let clients: Vec<Client> = clients.into_iter().flatten().collect();
    Ok(vec![bench.troubles(&clients)?, bench.restarts(&clients)?])
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
    /// Number of fleets so far.
    fleets: AtomicU8,
}

impl FleetBench {
    fn troubles(&self, clients: &[Client]) -> Result<Table> {
        let mut rows = Vec::new();
        for case in TROUBLES {
            for load in loads(case, clients, "1ms").filter(|load| !load.client.only_restarts) {
                eprintln!("{}: {}", case.name, load.name());
                let account = match self.trouble(case.event, load) {
                    Err(Failure::Missing(why)) => {
                        eprintln!("  not run: {why}");
                        None
                    }
                    account => Some(account?),
                };
                rows.push(row(case.name, &load.name(), account.as_ref()));
            }
        }
        let title = format!(
            "Unary calls to three servers of Thalweg for {} s, or at least {} s where one of them falls silent (after \
             0.5 s; the clients send a PING after 10 s and wait 2 s). A name whose first address, `::1`, drops \
             packets is called for {} s. {}, pauses of 1 ms, a deadline of 20 s; client on core 0, servers on core 1. \
             The slow server responds after 20 ms, the others then after 1 ms. Hedging starts a second attempt after \
             5 ms. The last column is the third server's share of all attempts. Times are of all calls, failed ones \
             too:",
            self.seconds.as_secs(),
            (LEAD + KEEPALIVE_LIMIT).as_secs(),
            FIRST_CALLS.as_secs(),
            CALLERS,
        );
        Ok(Table::new(title, COLUMNS, rows))
    }

    /// Returns what the client's calls experience with a third server in this state.
    fn trouble(&self, third: Third, load: Load<'_>) -> Result<Account> {
        let fleet = self.fleet(third)?;
        let calling = load.start(&fleet)?;
        let seconds = if third == Third::FallsSilent {
            thread::sleep(LEAD);
            fleet.silence()?;
            self.seconds.max(KEEPALIVE_LIMIT)
        } else if load.by == By::SilentName {
            FIRST_CALLS
        } else {
            self.seconds
        };
        thread::sleep(seconds);
        Ok(Account { calls: calling.end()?, share: fleet.share_of_third()? })
    }

    fn restarts(&self, clients: &[Client]) -> Result<Table> {
        let mut rows = Vec::new();
        for case in RESTARTING {
            let loads: Vec<Load<'_>> = loads(case, clients, "10ms").collect();
            eprintln!("{}: {} clients at the same time", case.name, loads.len());
            let accounts = thread::scope(|scope| {
                let running: Vec<_> =
                    loads.iter().map(|load| scope.spawn(|| self.restart(case.event, *load))).collect();
                let account = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().map_err(|_| failed!("the thread of a fleet panicked"))?
                };
                running.into_iter().map(account).collect::<Result<Vec<_>>>()
            })?;
            rows.extend(loads.iter().zip(&accounts).map(|(load, of)| row(case.name, &load.name(), Some(of))));
        }
        let title = format!(
            "{} restarts of three servers of Thalweg, one after the other, under load: all clients at the same time, \
             each with three servers of its own. {}, pauses of 10 ms, a deadline of 20 s; clients on core 0, servers \
             on core 1. A server stops by SIGTERM, and finishes its calls, or by SIGKILL, and starts again at once. \
             Rolling: the next one stops when this one has got a call. A client that gets the servers by name finds \
             three addresses of one name, of which tonic, and thalweg-tonic without a policy, use one at a time. \
             thalweg-tonic has a policy by `EndpointExt::service_config`:",
            grouped(self.restarts as f64),
            CALLERS,
        );
        let columns = COLUMNS.iter().take(COLUMNS.len() - 1).copied();
        let rows = rows.into_iter().map(|mut row| {
            row.pop();
            row
        });
        Ok(Table::new(title, columns, rows.collect()))
    }

    /// Returns what the client's calls experience during the restarts.
    fn restart(&self, restarts: Restarts, load: Load<'_>) -> Result<Account> {
        let mut fleet = self.fleet(Third::Up)?;
        let calling = load.start(&fleet)?;
        thread::sleep(LEAD);
        let limit = if load.is_balanced() { BACK_LIMIT } else { UNBALANCED_LIMIT };
        let mut uncalled = 0;
        for number in 0..self.restarts {
            let server = fleet.restart(number, restarts.stop)?;
            if restarts.is_rolling && !server.speaks_within(limit) {
                uncalled += 1;
            }
        }
        if uncalled > 0 && load.is_balanced() {
            eprintln!("  {}: {uncalled} servers were not called again in {BACK_LIMIT:?}", load.name());
        }
        thread::sleep(LEAD);
        Ok(Account { calls: calling.end()?, share: None })
    }

    fn fleet(&self, third: Third) -> Result<Fleet> {
        // A bench starts fewer than 256 fleets.
        Fleet::start(&self.server, third, self.fleets.fetch_add(1, Ordering::Relaxed))
    }
}

/// The clients of a case, each with its policies and ways to the servers.
fn loads<'c, E>(
    case: &'c Case<E>,
    clients: &'c [Client],
    pause: &'static str,
) -> impl Iterator<Item = Load<'c>> {
    case.by.iter().flat_map(move |&by| {
        clients.iter().flat_map(move |client| {
            let policies = case.policies.iter().filter(|policy| client.has(**policy));
            policies.map(move |&policy| Load { client, policy, by, pause })
        })
    })
}

/// Outcome of the calls of a client.
struct Account {
    calls: Calls,
    /// The part of all attempts that the third server got, if that is of interest.
    share: Option<f64>,
}

const CALLERS: &str = "16 callers, each of which makes its next call after the last, failed or not";
const COLUMNS: [&str; 8] =
    ["case", "client", "ok", "failed", "longer than 1 s", "p99, ms", "longest, ms", "to the third"];

fn row(case: &str, client: &str, account: Option<&Account>) -> Vec<String> {
    let mut row = vec![case.to_owned(), client.to_owned()];
    if let Some(Account { calls, share }) = account {
        // Too long for a table.
        for failed in &calls.failures {
            eprintln!("  {client}: {} × {}, the first: {}", failed.count, failed.code, failed.example);
        }
        row.extend([calls.ok, calls.failed, calls.slow].map(|number| grouped(number as f64)));
        row.extend([calls.p99_us, calls.max_us].map(|us| three_digits(us / 1e3)));
        row.extend(share.map(|share| format!("{:.1} %", share * 100.0)));
    } else {
        row.push("not run".to_owned());
    }
    row.resize(COLUMNS.len(), "–".to_owned());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_all_columns() {
        let calls = Calls { ok: 1234, failed: 5, failures: Vec::new(), slow: 1, p99_us: 1500.0, max_us: 1e6 };
        let account = Account { calls, share: Some(0.0512) };
        let expected = ["case", "tonic", "1,234", "5", "1", "1.50", "1000", "5.1 %"];
        assert_eq!(row("case", "tonic", Some(&account)), expected);
        let expected = ["case", "tonic", "not run", "–", "–", "–", "–", "–"];
        assert_eq!(row("case", "tonic", None), expected);
    }
}
