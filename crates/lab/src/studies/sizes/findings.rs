//! Findings of a sizes study, and doubts about its figures.

use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::{count, percent, throughput, time, times};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::{Interval, median};

use super::choice::Choices;
use super::choice::words::sentence;
use super::lines::{PLATEAU_FACTOR, Plateau, SizesLine, SizesLines};
use crate::findings::{Doubt, Finding, collect_findings};
use crate::load::gathered::{MergedCell, distinct};
use crate::load::noise::Noise;
use crate::load::verdict::{JudgedRatio, MARGIN, Verdict};
use crate::load::{Kind, Transport, Work};
use crate::record::CallType;

/// Noise floor, as a ratio, above which real differences go unnoticed.
const FLOOR_HIGH: f64 = 1.2;

/// A figure at the top of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    pub(crate) name: &'static str,
    /// Value with its unit.
    pub(crate) figure: String,
    /// Details and comparison.
    pub(crate) detail: String,
}

/// Returns the answer in one sentence; `None` if nothing was measured.
pub(crate) fn answer(analysis: &SizesLines<'_>) -> Option<String> {
    let best = most(analysis.cells(), MergedCell::bytes_per_s)?;
    let moves = format!("most bytes move in messages of {}, {}", best.size(), throughput(best.bytes_per_s()));
    let plateau = lone_lines(analysis).into_iter().find_map(|line| Some((line.transport, line.plateau()?)));
    Some(match plateau {
        Some((transport, Plateau { level_ns, last, .. })) => {
            format!("Over {transport} a lone call takes {} up to {last}; {moves}.", time(level_ns as f64))
        }
        None => format!("Of all sizes, {moves}."),
    })
}

/// Returns the headline figures.
pub(crate) fn headlines(analysis: &SizesLines<'_>) -> Vec<Headline> {
    let lone = lone_lines(analysis);
    let mut headlines = Vec::new();
    let smallest = lone.iter().filter_map(|line| {
        let cell = line.cells.first()?;
        Some((line, cell, cell.latency()?))
    });
    if let Some((line, cell, latency)) = smallest.min_by_key(|(.., latency)| latency.p50) {
        let interval = cell.p50_interval().map(|it| format!(" ({})", from_to(it, time))).unwrap_or_default();
        headlines.push(Headline {
            name: "A lone call",
            figure: time(latency.p50 as f64),
            detail: format!(
                "{} over {}, median{interval}; p99 {}",
                cell.size(),
                line.transport,
                time(latency.p99 as f64)
            ),
        });
    }
    if let Some((line, plateau)) = lone.iter().find_map(|line| Some((line, line.plateau()?))) {
        let level = time(plateau.level_ns as f64);
        let detail = match plateau.leaves {
            Some((size, p50)) => {
                format!("within {PLATEAU_FACTOR} × {level}; {size} takes {}", time(p50 as f64))
            }
            None => format!("every size takes at most {PLATEAU_FACTOR} × {level}"),
        };
        headlines.push(Headline {
            name: "Latency is flat up to",
            figure: plateau.last.to_string(),
            detail: format!("over {}: {detail}", line.transport),
        });
    }
    if let Some(cell) = most(analysis.cells(), MergedCell::rate_per_s) {
        headlines.push(Headline {
            name: "Highest rate",
            figure: format!("{}/s", count(cell.rate_per_s())),
            detail: format!(
                "{}, messages of {}{}{}",
                of(cell),
                cell.size(),
                cell.rate_interval().map(|it| format!(" ({}/s)", from_to(it, count))).unwrap_or_default(),
                caution(cell)
            ),
        });
    }
    if let Some(cell) = most(analysis.cells(), MergedCell::bytes_per_s) {
        let share =
            analysis.share_of_socket(cell).map(|share| format!(", {} of the bare socket", percent(share)));
        headlines.push(Headline {
            name: "Highest throughput",
            figure: throughput(cell.bytes_per_s()),
            detail: format!(
                "{}, messages of {}{}{}",
                of(cell),
                cell.size(),
                share.unwrap_or_default(),
                caution(cell)
            ),
        });
    }
    headlines
}

/// Returns all findings, most important first.
pub(crate) fn findings(analysis: &SizesLines<'_>, choices: &Choices) -> Vec<Finding> {
    collect_findings([
        ("Latency", latency(analysis)),
        ("Throughput", throughputs(analysis)),
        ("Rate", rates(analysis)),
        ("Which call", sentence(choices)),
        ("TCP or UDS", transports(analysis)),
        ("Spikes", spikes(analysis)),
        ("Noise", noise(analysis)),
    ])
}

/// Returns a doubt if the noise floor is so high that only large differences are visible.
pub(crate) fn noisy(noise: &Noise) -> Option<Doubt> {
    let floor = noise.floors.iter().map(|floor| floor.rate.exp()).fold(1.0, f64::max);
    (floor > FLOOR_HIGH).then(|| Doubt::noisy(None, floor))
}

fn latency(analysis: &SizesLines<'_>) -> Option<String> {
    let mut sentences = Vec::new();
    for line in lone_lines(analysis) {
        let Some(Plateau { level_ns, last, leaves }) = line.plateau() else { continue };
        let (transport, level) = (line.transport, time(level_ns as f64));
        sentences.push(match leaves {
            Some((size, p50)) => format!(
                "Over {transport} a lone unary call takes {level} (median) and stays within {PLATEAU_FACTOR} times \
                 that up to {last}. Latency leaves this plateau between {last} and {size}, where a call takes {}.",
                time(p50 as f64)
            ),
            None => format!(
                "Over {transport} a lone unary call takes {level} (median), and no size up to {last} takes more than \
                 {PLATEAU_FACTOR} times that: latency does not leave its plateau."
            ),
        });
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn throughputs(analysis: &SizesLines<'_>) -> Option<String> {
    let cell = most(analysis.cells(), MergedCell::bytes_per_s)?;
    let text = format!(
        "Most bytes move in {} with messages of {}: {}{}{}.",
        of(cell),
        cell.size(),
        throughput(cell.bytes_per_s()),
        analysis
            .share_of_socket(cell)
            .map(|share| format!(", {} of what a bare socket moves", percent(share)))
            .unwrap_or_default(),
        caution(cell)
    );
    let bests: Vec<_> = distinct(analysis.calls().map(|line| line.kind))
        .into_iter()
        .filter_map(|kind| {
            let cell = most(analysis.cells().filter(|cell| cell.kind() == kind), MergedCell::bytes_per_s)?;
            let (phrase, transport, size) = (kind.phrase(), cell.point.transport, cell.size());
            Some(format!("{phrase} {size} ({transport}, {})", throughput(cell.bytes_per_s())))
        })
        .collect();
    if bests.len() > 1 {
        Some(format!("{text} The best size of each: {}.", bests.join("; ")))
    } else {
        Some(text)
    }
}

fn rates(analysis: &SizesLines<'_>) -> Option<String> {
    let cell = most(analysis.cells(), MergedCell::rate_per_s)?;
    let mut sentences = vec![format!(
        "The highest rate is {} {}/s: {} with messages of {}{}.",
        count(cell.rate_per_s()),
        operation(cell),
        of(cell),
        cell.size(),
        caution(cell)
    )];
    let unary = analysis.calls().filter(|line| line.kind.work == Work::Call(CallType::Unary));
    for many in unary.filter(|line| line.kind.in_flight > 1) {
        let Some(lone) = analysis.line(Kind::LONE_CALL, many.transport) else { continue };
        let (Some(many_cell), Some(lone_cell)) = (many.cells.first(), lone.cells.first()) else { continue };
        if many_cell.size() == lone_cell.size() {
            sentences.push(format!(
                "Over {}, {} unary calls of {} in flight reach {} calls/s, {} a lone caller's rate.",
                many.transport,
                many.kind.in_flight,
                many_cell.size(),
                count(many_cell.rate_per_s()),
                times(many_cell.rate_per_s() / lone_cell.rate_per_s())
            ));
        }
    }
    Some(sentences.join(" "))
}

fn transports(analysis: &SizesLines<'_>) -> Option<String> {
    let tcp = analysis.line(Kind::LONE_CALL, Transport::Tcp)?;
    let uds = analysis.line(Kind::LONE_CALL, Transport::Uds)?;
    let floor = analysis.noise.median(Kind::LONE_CALL);
    let both = |cell: &MergedCell<'_>| Some((cell.size(), uds.at(cell.size())?.compare_median(cell, floor)));
    let compared: Vec<(ByteSize, JudgedRatio)> = tcp.cells.iter().filter_map(both).collect();
    let (&(smallest, first), &(largest, last)) = (compared.first()?, compared.last()?);
    let in_words = |compared: JudgedRatio, than: &str| {
        let ratio = compared.ratio?;
        let interval = ratio.interval.map(|it| format!(" ({})", percents(it))).unwrap_or_default();
        Some(match compared.verdict {
            Verdict::Faster => format!("takes {} less time{than}{interval}", percent(1.0 - ratio.ratio)),
            Verdict::Slower => format!("takes {} more time{than}{interval}", percent(ratio.ratio - 1.0)),
            Verdict::NoDifference => {
                format!("takes the same time over both, within {}", percent(MARGIN - 1.0))
            }
            Verdict::CannotTell | Verdict::NotMeasured => {
                format!("may take less or more time{than}: this study cannot tell{interval}")
            }
        })
    };
    let of_smallest = in_words(first, " over UDS than over TCP")?;
    let of_largest = in_words(last, "").filter(|_| largest != smallest);
    let of_largest = of_largest.map(|words| format!("; one of {largest} {words}")).unwrap_or_default();
    Some(format!("A lone unary call of {smallest} {of_smallest}{of_largest}."))
}

/// Formats a ratio's interval as percentages: `-31 to -18 %`.
fn percents(Interval { low, high }: Interval) -> String {
    format!("{:+.0} to {:+.0} %", (low - 1.0) * 100.0, (high - 1.0) * 100.0)
}

fn spikes(analysis: &SizesLines<'_>) -> Option<String> {
    let answered: Vec<(&MergedCell<'_>, Latency)> =
        analysis.cells().filter_map(|cell| Some((cell, cell.latency()?))).collect();
    let one_way = analysis.cells().filter_map(|cell| Some((cell, cell.pace()?)));
    let mut sentences = Vec::new();
    if let Some((cell, latency)) = answered.iter().max_by_key(|(_, latency)| latency.max) {
        sentences.push(format!(
            "The longest wait was {}, with {} and messages of {}{}; the median there is {}, p99.99 {}.",
            time(latency.max as f64),
            of(cell),
            cell.size(),
            time_of_longest_wait(cell),
            time(latency.p50 as f64),
            time(latency.p99_99 as f64),
        ));
    }
    let ratio = |latency: &Latency| latency.max as f64 / latency.p50.max(1) as f64;
    let lone = answered.iter().filter(|(cell, _)| cell.kind() == Kind::LONE_CALL);
    if let Some((cell, latency)) = lone.max_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b))) {
        sentences.push(format!(
            "Among lone calls, the farthest from its median was one with {} over {}: {}, {} the median.",
            cell.size(),
            cell.point.transport,
            time(latency.max as f64),
            times(ratio(latency))
        ));
    }
    if let Some((cell, pace)) = one_way.max_by_key(|(_, pace)| pace.gap_max) {
        sentences.push(format!(
            "The largest gap in a one-way stream was {}, with {} and messages of {}{}; one message took {} there on \
             average.",
            time(pace.gap_max as f64),
            of(cell),
            cell.size(),
            time_of_longest_wait(cell),
            time(pace.mean),
        ));
    }
    if sentences.is_empty() {
        return None;
    }
    sentences.push("Spikes are part of every figure here; none were removed.".to_owned());
    Some(sentences.join(" "))
}

/// Describes the uncertainty of the rates; `None` if each point has one window.
fn noise(analysis: &SizesLines<'_>) -> Option<String> {
    let half_width = |cell: &MergedCell<'_>| Some(cell.rate_interval()?.half_width().exp() - 1.0);
    let widths: Vec<(&MergedCell<'_>, f64)> =
        analysis.cells().filter_map(|cell| Some((cell, half_width(cell)?))).collect();
    let middle = median(widths.iter().map(|(_, width)| *width))?;
    let (cell, most) = widths.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let floors = analysis.noise.floors.iter().map(|floor| floor.rate.exp() - 1.0);
    let against_itself = floors
        .reduce(f64::max)
        .map(|most| format!("Measured against itself, ours differed by up to {}. ", percent(most)))
        .unwrap_or_default();
    Some(format!(
        "{against_itself}The 95 % intervals extend {} to each side of a rate (median over all points), and at most {}, \
         with {} and messages of {}.",
        percent(middle),
        percent(most),
        of(cell),
        cell.size()
    ))
}

/// Returns the time of a cell's longest wait.
fn time_of_longest_wait(cell: &MergedCell<'_>) -> String {
    cell.spike().map(|spike| format!(", {} into its run", time(spike.at_ns as f64))).unwrap_or_default()
}

/// Formats an interval such as `41.1 µs to 43.0 µs`.
fn from_to(Interval { low, high }: Interval, show: fn(f64) -> String) -> String {
    format!("{} to {}", show(low), show(high))
}

fn lone_lines<'a, 'r>(analysis: &'a SizesLines<'r>) -> Vec<&'a SizesLine<'r>> {
    analysis.lines.iter().filter(|line| line.kind == Kind::LONE_CALL).collect()
}

/// Returns the cell with the largest figure.
fn most<'a, 'r: 'a>(
    cells: impl Iterator<Item = &'a MergedCell<'r>>,
    figure: fn(&MergedCell<'r>) -> f64,
) -> Option<&'a MergedCell<'r>> {
    cells.filter(|cell| figure(cell) > 0.0).max_by(|a, b| figure(a).total_cmp(&figure(b)))
}

/// Returns a note if the client was the bottleneck.
fn caution(cell: &MergedCell<'_>) -> &'static str {
    if cell.is_client_limit() { " (the client was the limit)" } else { "" }
}

/// Returns the name of a cell's operations.
fn operation(cell: &MergedCell<'_>) -> &'static str {
    match cell.point.work {
        Work::Call(call) => call.operation(),
        Work::Socket(_) => "messages",
    }
}

fn of(cell: &MergedCell<'_>) -> String {
    format!("{} over {}", cell.kind().phrase(), cell.point.transport)
}
