//! Thalweg against itself with a server that computes for each message, just so long that the pair moves a tenth less:
//! whether the lab finds it.
//!
//! How long that is depends on the work, and is found first, apart from the lab: windows of both in turns.

use serde_json::Value;

use crate::bench::table::Table;
use crate::bench::{cores, same};
use crate::job::{Failure, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};
use crate::{lab, workspace};

const NAME: &str = "slowed";
/// What the slowed pair moves of what the other does.
const SHARE: f64 = 0.9;
/// How often another time is tried, and by how many pairs of windows each is told.
const TRIES: usize = 3;
const PAIRS: usize = 12;
/// By how many what it came to is told.
const PAIRS_LAST: usize = 24;
const WINDOW: &str = "--connections 1 -z 300ms --warmup 150ms";
const BUDGET: &str = "50s";

/// A call type, how many are in flight, and the payload in bytes.
type Cell = (&'static str, u64, u64);

const CELLS: &[Cell] = &[
    ("unary", 1, 0),
    ("unary", 16, 0),
    ("unary", 16, 1024),
    ("unary", 16, 65_536),
    ("server-stream", 1, 65_536),
    ("bidi-stream", 1, 65_536),
];

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let [ours] = peers else { return Err(Failure::failed("this is about one stack")) };
    let rows = CELLS.iter().map(|&cell| row(ours, cell, log)).collect::<Result<Vec<_>, _>>()?;
    let title = format!(
        "Thalweg against Thalweg whose server computes for each message, so long that the pair moves {SHARE} of what \
         the other does. Apart: what it moved in {PAIRS_LAST} pairs of windows apart from the lab, with two standard \
         errors. Margin: the larger of half the interval and the noise floor; a difference of {:.0} % can be found \
         where it is smaller:",
        100.0 * (1.0 / SHARE - 1.0)
    );
    let heads = ["work", "µs a message", "apart", "the lab: ours ÷ slowed", "margin", "found"];
    Ok(vec![Table::new(title, &heads, rows)])
}

fn row(ours: &BuiltPeer, cell: Cell, log: &Log) -> Result<Vec<String>, Failure> {
    let (call, in_flight, size_bytes) = cell;
    let (work_ns, apart) = calibrated(ours, cell, log)?;
    let directory = workspace::output().join(NAME);
    let flags = format!("--work {work_ns}ns");
    let stacks = same::disguised(NAME, &ours.program, &flags, &directory)?;
    let words = format!(
        "sizes --against slowed --peers {} --calls {call} --sizes {size_bytes} -c {in_flight} --transports tcp \
         --budget {BUDGET}",
        stacks.display()
    );
    let figures = lab::condensed(&words, &directory.join(format!("{call}-{in_flight}-{size_bytes}")), log)?;
    let of_cell = |it: &&Value| it["work"] == call && it["in_flight"] == in_flight;
    let found = |list: &str| figures[list].as_array().into_iter().flatten().find(of_cell).cloned();
    let against = found("cells").map_or(Value::Null, |it| it["against"][0].clone());
    let floor = found("noise").and_then(|it| it["ratio"].as_f64()).map_or(0.0, f64::ln);
    let log_of = |key: &str| against[key].as_f64().map(f64::ln);
    let half = log_of("high").zip(log_of("low")).map_or(f64::INFINITY, |(high, low)| (high - low) / 2.0);
    let margin = half.max(floor).exp() - 1.0;
    let size = if size_bytes % 1024 == 0 && size_bytes > 0 {
        format!("{} KiB", size_bytes / 1024)
    } else {
        format!("{size_bytes} B")
    };
    Ok(vec![
        format!("{call}, {in_flight} in flight, {size}"),
        format!("{:.2}", work_ns as f64 / 1e3),
        format!("{:.3} ± {:.3}", apart.mean, apart.errors),
        same::ratio(&against),
        format!("{:.0} %", 100.0 * margin),
        against["verdict"].as_str().unwrap_or("not measured").to_owned(),
    ])
}

/// What the slowed pair moves of what the other does.
struct Apart {
    /// The geometric mean of the pairs' shares.
    mean: f64,
    /// Two standard errors of it.
    errors: f64,
}

/// How long the server computes for a message, and what the pair then moves of what it did.
fn calibrated(ours: &BuiltPeer, cell: Cell, log: &Log) -> Result<(u64, Apart), Failure> {
    let port = free_port()?;
    let _plain = Server::start(&ours.serve(port).under(cores::SERVER), port, log)?;
    let slower_by = 1.0 / SHARE - 1.0;
    // Twice what is wanted, as if all of a message's time were its server's: what is small drowns in noise.
    let mut work_ns = 2.0 * slower_by * 1e9 / rate(ours, port, cell, log)?;
    let (mut works_ns, mut slowed_by) = (0.0, 0.0);
    for _ in 0..TRIES {
        let apart = apart(ours, port, work_ns as u64, cell, PAIRS, log)?;
        works_ns += work_ns;
        slowed_by += 1.0 / apart.mean - 1.0;
        // Of all tries: what a nanosecond of work costs. Not less than a tenth, whatever the noise says.
        let each_ns = (slowed_by / works_ns).max(slower_by / works_ns / 10.0);
        work_ns = slower_by / each_ns;
    }
    let work_ns = work_ns as u64;
    let apart = apart(ours, port, work_ns, cell, PAIRS_LAST, log)?;
    Ok((work_ns, apart))
}

fn apart(
    ours: &BuiltPeer,
    port: u16,
    work_ns: u64,
    cell: Cell,
    pairs: usize,
    log: &Log,
) -> Result<Apart, Failure> {
    let slowed_port = free_port()?;
    let serve = ours.serve(slowed_port).words(&format!("--work {work_ns}ns"));
    let slowed = Server::start(&serve.under(cores::SERVER), slowed_port, log)?;
    let of = |port| rate(ours, port, cell, log);
    let mut shares = Vec::new();
    for pair in 0..pairs {
        let (first, second) = if pair % 2 == 0 { (port, slowed_port) } else { (slowed_port, port) };
        let (one, other) = (of(first)?, of(second)?);
        let share = if first == port { other / one } else { one / other };
        shares.push(share.ln());
    }
    slowed.stop()?;
    let number = pairs as f64;
    let mean = shares.iter().sum::<f64>() / number;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (number - 1.0);
    let apart = Apart { mean: mean.exp(), errors: 2.0 * mean.exp() * (variance / number).sqrt() };
    let (call, in_flight, size_bytes) = cell;
    println!(
        "{call}, {in_flight} in flight, {size_bytes} B: {work_ns} ns a message leave {:.3} ± {:.3}",
        apart.mean, apart.errors
    );
    Ok(apart)
}

fn rate(ours: &BuiltPeer, port: u16, (call, in_flight, size_bytes): Cell, log: &Log) -> Result<f64, Failure> {
    let words = format!("--call {call} -c {in_flight} --size {size_bytes} {WINDOW}");
    Ok(measure(ours.load(port, &words).under(cores::CLIENT), log)?.rate_per_s)
}
