//! Published programs on tonic and on the patched package: rates and CPU times of a small call of each, with 16 calls
//! in flight, and of messages on one stream. Both ends are on the stack; etcd and containerd are their own servers. The
//! two stacks alternate.

use std::path::{Path, PathBuf};

use super::pair::{CLIENT, SERVER};
use super::table::{Table, grouped, three_digits};
use super::turns::{Spread, alternating, column, fixed, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::programs::{PATCHED, ProgramServer, THEIRS, WITH_OTHERS, build};

const ROUNDS: usize = 5;
/// Length of a window, in seconds.
const WINDOW_S: u32 = 2;
/// Clients of the suite's server. `health` is that of tonic-health.
const CLIENTS: &[&str] =
    &["console", "flight", "health", "middleware", "pubsub", "qdrant", "spiffe", "telemetry", "xds"];

/// Streams of messages, by direction and size in bytes.
const STREAMS: &[&str] = &[
    "send-0",
    "send-64",
    "send-1024",
    "receive-0",
    "receive-64",
    "receive-1024",
    "exchange-0",
    "exchange-64",
    "exchange-1024",
];

pub(super) fn run(_: &[BuiltPeer]) -> Result<Vec<Table>> {
    let programs = [build(PATCHED, "release")?, build(THEIRS, "release")?];
    let rows = |names: &[&str]| names.iter().map(|name| row(name, &programs)).collect::<Result<Vec<_>>>();
    let calls = [CLIENTS, WITH_OTHERS].concat();
    let title = format!(
        "Published programs, 16 calls in flight, client on core 0, server on core 1; calls per second and CPU time \
         of a call in µs; medians of {ROUNDS} alternating rounds, and the ratio's range:"
    );
    let columns =
        ["client", "patched", "tonic", "ratio", "client, patched", "tonic", "server, patched", "tonic"];
    let streams_title = format!(
        "Messages with one field of bytes on one stream, sent from ordinary streams, client on core 0, server on core \
         1; messages per second and CPU time of a message in ns; medians of {ROUNDS} alternating rounds, and the \
         ratio's range:"
    );
    Ok(vec![Table::new(title, columns, rows(&calls)?), Table::new(streams_title, columns, rows(STREAMS)?)])
}

fn row(name: &str, programs: &[PathBuf]) -> Result<Vec<String>> {
    let rounds = alternating(ROUNDS, programs, |program| window(name, program))?;
    let of = |figure: usize| rounds.iter().map(|round| round.iter().map(|it| it[figure]).collect()).collect();
    let [rates, client, server]: [Vec<Vec<f64>>; 3] = [0, 1, 2].map(of);
    let time: fn(f64) -> String =
        if STREAMS.contains(&name) { |us| three_digits(us * 1e3) } else { three_digits };
    let show = |rounds: &[Vec<f64>], format: fn(f64) -> String| {
        [0, 1].map(|stack| format(column(rounds, stack).median))
    };
    let ratio: Spread = ratio(&rates, 0, 1);
    let mut row = vec![name.to_owned()];
    row.extend(show(&rates, grouped));
    row.push(ratio.show(fixed(2)));
    row.extend(show(&client, time));
    row.extend(show(&server, time));
    Ok(row)
}

/// Measures one window with a new server: calls per second, and the CPU time of both processes per call in µs.
fn window(name: &str, program: &Path) -> Result<[f64; 3]> {
    let server = if WITH_OTHERS.contains(&name) {
        ProgramServer::other(name, SERVER)?
    } else if STREAMS.contains(&name) {
        ProgramServer::streams(program, SERVER)?
    } else {
        ProgramServer::stubs(program, SERVER)?
    };
    let process = server.server.process_id();
    let job = Job::new(program).arg("rate").arg(name).arg(server.address(name));
    let job = job.words(&format!("{WINDOW_S} {process}")).under(CLIENT);
    let text = job.text()?;
    let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    figures.try_into().map_err(|_| failed!("`{job}` printed {text:?}, not three figures"))
}
