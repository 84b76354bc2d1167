//! Text on what limits each stack, and what to change.

use thalweg_measure::figures::{count, percent, ratio_text, time};
use thalweg_measure::statistics::Ratio;
use thalweg_measure::wording::{capitalised, counted, enumerated};

use super::analyse::{Channels, ChannelsLine, Panel, network};
use super::limit::{Gain, Limit, LimitInput, LimitJudgement, ReachedRate, judge};
use super::numbers::{
    Adaptive, Best, BestNumbers, LoadRow, LoadsTally, MultiConnection, Names, lines_of, numbers,
};
use crate::load::gathered::{MergedCell, grouped};
use crate::load::verdict::{MARGIN, Verdict};
use crate::load::{CallsSettings, Strategy};

/// Silent share below which the wire is not mentioned.
const IDLE_SHARE: f64 = 0.1;
/// Average number of one side's threads waiting for a processor above which they are mentioned.
const CROWDED: f64 = 0.2;

/// Verdict on one stack, for one kind of call and delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackVerdict {
    /// The client, and the server if that is another stack's.
    pub(crate) stack: String,
    /// Best number of connections for each load.
    pub(crate) numbers: BestNumbers,
    /// Limiting factor, with the figures behind it.
    pub(crate) judgement: LimitJudgement,
    /// Observations in sentences.
    pub(crate) text: String,
    /// Advice in a sentence.
    pub(crate) advice: String,
}

impl StackVerdict {
    /// Returns the kind of call and delay: `unary, 5 ms added round trip`.
    pub(crate) fn conditions(&self) -> String {
        conditions(&self.numbers)
    }
}

/// Returns a verdict for each stack, kind of call and delay measured over one connection, grouped by stack.
pub(crate) fn verdicts(channels: &Channels<'_>, settings: &CallsSettings) -> Vec<StackVerdict> {
    let of = |numbers| verdict(channels, numbers, settings);
    numbers(channels).into_iter().filter_map(of).collect()
}

/// Returns how this cell compares with one connection.
pub(crate) fn several<'v>(
    verdicts: &'v [StackVerdict],
    cell: &MergedCell<'_>,
) -> Option<&'v MultiConnection> {
    verdicts.iter().find_map(|verdict| verdict.numbers.several(cell))
}

/// Returns whether the adaptive channel is shown to be slower than the fixed number it is compared with.
pub(crate) fn is_behind(adaptive: &Adaptive) -> bool {
    adaptive.share.verdict == Verdict::Slower
}

fn conditions(numbers: &BestNumbers) -> String {
    format!("{}, {}", numbers.call, network(numbers.round_trip))
}

fn verdict(channels: &Channels<'_>, numbers: BestNumbers, settings: &CallsSettings) -> Option<StackVerdict> {
    let here = |panel: &&Panel<'_>| (panel.call, panel.round_trip) == (numbers.call, numbers.round_trip);
    let lines = lines_of(channels.panels.iter().find(here)?, &numbers.stack);
    let one = lines.iter().find(|line| line.strategy == Strategy::Fixed(1))?;
    let scene = LimitInput {
        round_trip_ns: numbers.round_trip.as_nanos() as f64,
        one: reached_rates(one),
        lone_per_s: lone_call_rate(&lines, one),
        rows: numbers.rows.clone(),
        client_processors: settings.client_cpus.as_ref().map(|cpus| cpus.as_slice().len() as f64),
        server_processors: settings.server_cpus.as_ref().map(|cpus| cpus.as_slice().len() as f64),
    };
    let judgement = judge(&scene)?;
    let mut text = vec![observations(&judgement, &scene)];
    text.extend(crowded(one));
    text.extend(silence(one));
    text.extend(lines.iter().filter_map(|line| shared(line)));
    text.extend(adaptive(&numbers.rows, &lines));
    Some(StackVerdict {
        stack: shown(&numbers.stack, settings),
        advice: advice(&judgement, &numbers.rows),
        numbers,
        judgement,
        text: text.join(" "),
    })
}

fn shown((client, server): &Names, settings: &CallsSettings) -> String {
    let server = settings.target.as_ref().unwrap_or(server);
    if client == server { client.clone() } else { format!("{client} → {server}") }
}

fn reached_rates(line: &ChannelsLine<'_>) -> Vec<ReachedRate> {
    let reached = line.cells.iter().map(|cell| ReachedRate {
        in_flight: cell.point.in_flight,
        rate_per_s: cell.rate_per_s(),
        client_processors: cell.client().map(|used| used.processors),
        server_processors: cell.server().map(|used| used.processors),
    });
    reached.collect()
}

/// Returns the highest rate of any strategy at the lowest load measured over one connection. A connection per call is
/// excluded, because connecting is part of its calls.
fn lone_call_rate(lines: &[&ChannelsLine<'_>], one: &ChannelsLine<'_>) -> f64 {
    let Some(first) = one.cells.first() else { return 0.0 };
    let compared_lines = lines.iter().filter(|line| line.strategy != Strategy::PerCall);
    let rates = compared_lines.filter_map(|line| line.at(first.point.in_flight)?.rate());
    rates.fold(first.rate_per_s(), f64::max)
}

/// Describes observations over one connection.
fn observations(judgement: &LimitJudgement, scene: &LimitInput) -> String {
    let LimitJudgement { limit, knee, gain, last, streams, tally } = judgement;
    let reached =
        format!("{} in flight over one connection move {}/s", last.in_flight, count(last.rate_per_s));
    let behind = match knee {
        Some(knee) => format!("; from {knee} in flight on, this is less than half of ideal scaling"),
        None => String::new(),
    };
    let busy = busy(last, scene).map(|busy| format!(" {busy}.")).unwrap_or_default();
    let gained = gain.as_ref().map(|gain| format!(" {}", gained(gain))).unwrap_or_default();
    let more = more(*tally).map(|more| format!(": {more}")).unwrap_or_default();
    let what = match limit {
        Limit::Nothing => "Nothing limits it yet: the rate grows with the calls in flight.".to_owned(),
        Limit::Network => "Calls wait for the network: the rate grows with the calls in flight.".to_owned(),
        Limit::Channel => "The single connection limits the client.".to_owned(),
        Limit::Streams => format!(
            "At most some {} calls run on a connection at once: the server's limit of concurrent streams, or its \
             flow control, limits it.",
            count(streams.unwrap_or_default().round())
        ),
        Limit::ClientCpu => format!("The client's processors limit it{more}."),
        Limit::Server => format!("The server's processors limit it{more}."),
        Limit::Both => format!("Both sides' processors limit it{more}."),
        Limit::Unknown => format!(
            "Neither side's processors limit it{more}. Remaining causes: wake-ups, and other programs on the machine."
        ),
        Limit::CannotTell => format!("The limit is unknown, but it is neither side's processors{more}."),
    };
    format!("{what} {reached}{behind}.{gained}{busy}")
}

/// Describes the effect of more connections over all loads; `None` if they were not compared with one.
fn more(tally: LoadsTally) -> Option<String> {
    match tally {
        LoadsTally { gains: 1.., .. } => Some("more connections help little".to_owned()),
        LoadsTally { cannot_tell: open @ 1.., .. } => {
            Some(format!("at {open} of {} loads it is unclear whether more connections help", tally.loads()))
        }
        LoadsTally { nothing: 1.., .. } => Some("more connections do not help".to_owned()),
        _ => None,
    }
}

fn gained(gain: &Gain) -> String {
    let Gain { in_flight, from, several } = gain;
    format!(
        "With {in_flight} in flight “{}” ({}) moves {} as much; more connections help from {from} in flight on.",
        several.name,
        counted(several.connections.into(), "connection"),
        several.over_one.ratio.map(ratio_text).unwrap_or_default(),
    )
}

/// Describes how busy both sides were.
fn busy(last: &ReachedRate, scene: &LimitInput) -> Option<String> {
    let side = |name: &str, used: Option<f64>, of: Option<f64>| {
        let of = of.filter(|of| *of > 0.0)?;
        Some(format!("{name} for {}", percent(used? / of)))
    };
    let sides = [
        side("the client's processors were busy", last.client_processors, scene.client_processors),
        side("the server's", last.server_processors, scene.server_processors),
    ];
    let known: Vec<String> = sides.into_iter().flatten().collect();
    (!known.is_empty()).then(|| capitalised(&known.join(", ")))
}

/// Describes threads that waited although their processors were not fully used by them, so other programs ran there.
fn crowded(one: &ChannelsLine<'_>) -> Option<String> {
    let last = one.cells.last()?;
    let sides = [("client", last.client()?), ("server", last.server()?)];
    let crowded = sides.into_iter().filter_map(|(side, used)| {
        let waiting = used.waiting;
        (waiting >= CROWDED)
            .then(|| format!("{waiting:.1} threads of the {side} were ready and waited for a processor"))
    });
    let crowded: Vec<String> = crowded.collect();
    (!crowded.is_empty()).then(|| format!("On average {}.", crowded.join(", ")))
}

/// Describes how silent the wire of one connection was while calls were outstanding.
fn silence(one: &ChannelsLine<'_>) -> Option<String> {
    let watched = |cell: &MergedCell<'_>| Some((cell.point.in_flight, cell.wire?.all.clone()));
    let (in_flight, idle) = one.cells.iter().rev().find_map(watched)?;
    (idle.share >= IDLE_SHARE && idle.gaps > 0).then(|| {
        format!(
            "With {in_flight} in flight, no byte was on the wire for {} of the time, in gaps of {} (median; p99 {}).",
            percent(idle.share),
            time(idle.p50_ns as f64),
            time(idle.p99_ns as f64)
        )
    })
}

/// Describes channels that share connections.
fn shared(line: &ChannelsLine<'_>) -> Option<String> {
    let Strategy::Fixed(requested @ 2..) = line.strategy else { return None };
    let cell = line.cells.iter().rev().find(|cell| cell.point.in_flight >= requested)?;
    let established = cell.connections().filter(|&established| established < requested)?;
    let connections = if established == 1 { "one connection" } else { "fewer connections" };
    Some(format!(
        "The {requested} channels of “{}” share {connections}: the kernel counts {established}.",
        line.label()
    ))
}

/// Describes how the adaptive channel compares with the best number.
fn adaptive(rows: &[LoadRow], lines: &[&ChannelsLine<'_>]) -> Option<String> {
    let compared_rows: Vec<(&LoadRow, &Adaptive)> =
        rows.iter().filter_map(|row| Some((row, row.adaptive.as_ref()?))).collect();
    if compared_rows.is_empty() {
        return None;
    }
    let line = lines.iter().find(|line| line.strategy == Strategy::Adaptive)?;
    let lanes = line.cells.iter().filter_map(MergedCell::connections).max();
    let lanes = lanes.map(|lanes| format!(", with at most {}", counted(lanes.into(), "connection")));
    let lanes = lanes.unwrap_or_default();
    let ratio = |adaptive: &Adaptive| adaptive.share.ratio.map_or(1.0, |ratio: Ratio| ratio.ratio);
    let behind = compared_rows.iter().filter(|(_, adaptive)| is_behind(adaptive));
    let behind_at = behind.clone().count();
    let open = compared_rows
        .iter()
        .filter(|(_, it)| matches!(it.share.verdict, Verdict::CannotTell | Verdict::NotMeasured));
    let worst = behind.min_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    Some(match (worst, open.count()) {
        (Some((row, worst)), _) => format!(
            "The adaptive channel falls behind a fixed number at {behind_at} of {}, most with {} in flight: {} of \
             what {} move{}{lanes}.",
            counted(compared_rows.len() as u64, "load"),
            row.in_flight,
            worst.share.ratio.map(ratio_text).unwrap_or_default(),
            counted(worst.of.into(), "connection"),
            if worst.of == 1 { "s" } else { "" },
        ),
        (None, 0) => format!(
            "The adaptive channel is at least as fast as the best number, within {}, at all loads{lanes}.",
            percent(MARGIN - 1.0)
        ),
        (None, open) => format!(
            "The adaptive channel is not shown to fall behind a fixed number; the comparison is inconclusive at {open} \
             of {}{lanes}.",
            counted(compared_rows.len() as u64, "load")
        ),
    })
}

/// Returns the best number by load, fewest first: `Best: 1 connection with 4 or 16 in flight, 4 with 64.` Undecided
/// loads are left out.
pub(crate) fn by_load(rows: &[LoadRow]) -> String {
    let best = |row: &&LoadRow| match &row.best {
        Best::Only | Best::CannotTell => None,
        Best::One => Some(1),
        Best::Several(best) => Some(best.connections),
    };
    let mut loads = grouped(rows.iter().filter(|row| best(row).is_some()), best);
    loads.sort_by_key(|(number, _)| *number);
    let of_number = |(number, rows): &(Option<u32>, Vec<&LoadRow>)| {
        let in_flight: Vec<String> = rows.iter().map(|row| row.in_flight.to_string()).collect();
        let number = counted(number.unwrap_or_default().into(), "connection");
        format!("{number} with {} in flight", enumerated(&in_flight))
    };
    format!("Best: {}.", loads.iter().map(of_number).collect::<Vec<_>>().join("; "))
}

fn advice(judgement: &LimitJudgement, rows: &[LoadRow]) -> String {
    let tally = judgement.tally;
    let is_held_back = rows.iter().any(|row| row.adaptive.as_ref().is_some_and(is_behind));
    let has_adaptive = rows.iter().any(|row| row.adaptive.is_some());
    let by_itself = if has_adaptive && !is_held_back {
        " Or let the channel find the number (adaptive lanes)."
    } else {
        ""
    };
    let several = format!("Use the number that is best for the load. {}{by_itself}", by_load(rows));
    let more = match tally {
        LoadsTally { gains: 1.., .. } => "; more connections help little",
        LoadsTally { cannot_tell: 1.., .. } => {
            "; more rounds (--rounds) would show whether more connections help"
        }
        LoadsTally { nothing: 1.., .. } => "; more connections would not help",
        _ => "",
    };
    match judgement.limit {
        Limit::Nothing => format!("Keep more calls in flight to move more{more}."),
        Limit::Network => format!("Keep more calls in flight, or shorten the round trip{more}."),
        Limit::Channel => several,
        Limit::Streams => {
            format!("Raise the server's limit of concurrent streams, or its flow-control windows. {several}")
        }
        Limit::ClientCpu => format!("Give the client more processors or threads{more}."),
        Limit::Server => format!("Give the server more processors, or make its handlers cheaper{more}."),
        Limit::Both => format!("Give both sides more processors{more}."),
        Limit::Unknown => {
            format!(
                "Measure on an idle machine; then check wake-ups and which processors the threads run on{more}."
            )
        }
        Limit::CannotTell => "Measure more rounds (--rounds), on an idle machine.".to_owned(),
    }
}
