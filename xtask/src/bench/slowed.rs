//! Thalweg against itself, with a server that computes for each message just long enough to make the pair 10 % slower.
//! The lab should detect it.
//!
//! The computing time depends on the load. It is calibrated first, without the lab, in alternating windows.

use serde_json::Value;

use super::pair::Pair;
use super::same;
use super::table::Table;
use super::turns::alternating;
use crate::failure::Result;
use crate::figures::numbers;
use crate::files::list;
use crate::peers::BuiltPeer;
use crate::{lab, workspace};

const NAME: &str = "slowed";
/// Rate of the slowed pair, relative to the plain one.
const RELATIVE_RATE: f64 = 0.9;
const SLOWDOWN: f64 = 1.0 / RELATIVE_RATE - 1.0;
/// Number of calibration steps, and pairs of windows for each.
const TRIES: usize = 3;
const PAIRS: usize = 12;
/// Pairs of windows that measure the final result.
const FINAL_PAIRS: usize = 24;
const WINDOW: &str = "--connections 1 -z 300ms --warmup 150ms";
const BUDGET: &str = "50s";

/// Call type, calls in flight, and payload in bytes.
type Cell = (&'static str, u64, u64);

const CELLS: &[Cell] = &[
    ("unary", 1, 0),
    ("unary", 16, 0),
    ("unary", 16, 1024),
    ("unary", 16, 65_536),
    ("server-stream", 1, 65_536),
    ("bidi-stream", 1, 65_536),
];

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let [ours] = peers else { bail!("this measures one stack") };
    let rows = CELLS.iter().map(|&cell| row(ours, cell)).collect::<Result<_>>()?;
    let title = format!(
        "Thalweg against Thalweg with a server that computes for each message, which slows the pair to {RELATIVE_RATE} \
         of the rate. Apart: the relative rate in {FINAL_PAIRS} pairs of windows outside the lab, with two standard \
         errors. Margin: the larger of half the interval and the noise floor; a difference \
         of {:.0} % can be found where it is smaller:",
        100.0 * SLOWDOWN
    );
    let columns = ["work", "µs a message", "apart", "the lab: ours ÷ slowed", "margin", "found"];
    Ok(vec![Table::new(title, columns, rows)])
}

fn row(ours: &BuiltPeer, cell: Cell) -> Result<Vec<String>> {
    let (call, in_flight, size_bytes) = cell;
    let (work_ns, relative_rate) = calibrate(ours, cell)?;
    let directory = workspace::output().join(NAME);
    let stacks = same::copies_as_stacks(NAME, &ours.program, &format!("--work {work_ns}ns"), &directory)?;
    let words = format!(
        "sizes --against slowed --peers {} --calls {call} --sizes {size_bytes} -c {in_flight} --transports tcp \
         --budget {BUDGET}",
        stacks.display()
    );
    let figures = lab::condensed(&words, &directory.join(format!("{call}-{in_flight}-{size_bytes}")))?;
    let of_cell = |it: &&Value| it["work"] == call && it["in_flight"] == in_flight;
    let found = |of: &str| list(&figures[of]).iter().find(of_cell).cloned().unwrap_or_default();
    let against = found("cells")["against"][0].clone();
    let floor = found("noise")["ratio"].as_f64().map_or(0.0, f64::ln);
    let log_of = |key: &str| against[key].as_f64().map(f64::ln);
    let half = log_of("high").zip(log_of("low")).map_or(f64::INFINITY, |(high, low)| (high - low) / 2.0);
    Ok(vec![
        format!("{call}, {in_flight} in flight, {}", numbers::size(size_bytes)),
        format!("{:.2}", work_ns as f64 / 1e3),
        format!("{:.3} ± {:.3}", relative_rate.mean, relative_rate.errors),
        same::ratio(&against),
        format!("{:.0} %", 100.0 * (half.max(floor).exp() - 1.0)),
        against["verdict"].as_str().unwrap_or("not measured").to_owned(),
    ])
}

/// Rate of the slowed pair relative to the plain one.
struct RelativeRate {
    /// Geometric mean of the ratios of all pairs.
    mean: f64,
    /// Two standard errors of the mean.
    errors: f64,
}

/// Returns the server's computing time per message in ns, and the resulting relative rate.
fn calibrate(ours: &BuiltPeer, cell: Cell) -> Result<(u64, RelativeRate)> {
    let plain = Pair::start(ours, ours, "")?;
    // Start with twice the wanted slowdown, as if a message's whole time were spent in the server: a small slowdown
    // drowns in noise.
    let mut work_ns = 2.0 * SLOWDOWN * 1e9 / plain.rate(&load(cell))?;
    let mut pairs = vec![plain];
    let (mut works_ns, mut slowed_by) = (0.0, 0.0);
    for _ in 0..TRIES {
        let relative_rate = measure_relative_rate(ours, &mut pairs, work_ns as u64, cell, PAIRS)?;
        works_ns += work_ns;
        slowed_by += 1.0 / relative_rate.mean - 1.0;
        // Slowdown per nanosecond of work, over all steps. The floor of a tenth protects against noise.
        let each_ns = (slowed_by / works_ns).max(SLOWDOWN / works_ns / 10.0);
        work_ns = SLOWDOWN / each_ns;
    }
    let work_ns = work_ns as u64;
    Ok((work_ns, measure_relative_rate(ours, &mut pairs, work_ns, cell, FINAL_PAIRS)?))
}

/// Replaces the slowed pair, which follows the plain one in `pairs`, and measures `count` pairs of windows.
fn measure_relative_rate<'p>(
    ours: &'p BuiltPeer,
    pairs: &mut Vec<Pair<'p>>,
    work_ns: u64,
    cell: Cell,
    count: usize,
) -> Result<RelativeRate> {
    pairs.truncate(1);
    pairs.push(Pair::start(ours, ours, &format!("--work {work_ns}ns"))?);
    let rounds = alternating(count, pairs, |pair| pair.rate(&load(cell)))?;
    let shares: Vec<f64> = rounds.iter().map(|round| (round[1] / round[0]).ln()).collect();
    let number = count as f64;
    let mean = shares.iter().sum::<f64>() / number;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (number - 1.0);
    let relative_rate =
        RelativeRate { mean: mean.exp(), errors: 2.0 * mean.exp() * (variance / number).sqrt() };
    println!(
        "{}: {work_ns} ns a message leave {:.3} ± {:.3}",
        load(cell),
        relative_rate.mean,
        relative_rate.errors
    );
    Ok(relative_rate)
}

fn load((call, in_flight, size_bytes): Cell) -> String {
    format!("--call {call} -c {in_flight} --size {size_bytes} {WINDOW}")
}
