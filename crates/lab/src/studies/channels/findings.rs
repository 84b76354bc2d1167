//! What limits each stack, in words, and what to change.

use std::time::Duration;

use super::analyse::{Cell, Channels, Line, Panel, network};
use super::limit::{Gain, Judgement, Limit, Reached, Scene, Way, judge};
use crate::figures::{count, percent, time, times};
use crate::load::Settings;
use crate::load::Strategy;
use crate::record::CallType;
use crate::stack::Pair;
use crate::wording::{capitalised, counted};

/// A wire that is silent for less than this share of the time is not worth a word.
const IDLE_SHARE: f64 = 0.1;
/// So many threads of a side that wait for a processor on average are worth a word.
const CROWDED: f64 = 0.2;
/// An adaptive channel that comes this close to the best does what it should.
const CLOSE_SHARE: f64 = 0.95;

/// What limits one stack at one kind of call and delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Whose client, and whose server where that is another stack's.
    pub(crate) stack: String,
    /// Which kind of call.
    pub(crate) call: CallType,
    /// What the network adds to a round trip.
    pub(crate) round_trip: Duration,
    /// The figures it was told from.
    pub(crate) judgement: Judgement,
    /// What was seen, in sentences.
    pub(crate) text: String,
    /// What to change, in a sentence.
    pub(crate) advice: String,
}

/// One for each stack, kind of call and delay that was measured over one connection; a stack's stand together.
pub(crate) fn verdicts(channels: &Channels, settings: &Settings) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for stack in stacks(channels) {
        for panel in &channels.panels {
            verdicts.extend(verdict(channels, panel, &stack, settings));
        }
    }
    verdicts
}

/// Whether more connections to somebody else's server would help, and how many; `None` when nothing was measured.
pub(crate) fn advised(channels: &Channels, verdicts: &[Verdict], settings: &Settings) -> Option<String> {
    let target = settings.target.as_deref()?;
    let panel = channels.panels.first()?;
    let verdict = verdicts.first()?;
    let Some(gain) = &verdict.judgement.gain else {
        let last = &verdict.judgement.last;
        return Some(format!(
            "No: more connections to {target} would not help, with up to {} calls in flight.",
            last.in_flight
        ));
    };
    let fixed = panel.lines.iter().filter_map(|line| match line.strategy {
        Strategy::Fixed(connections) => Some((connections, line.at(gain.in_flight)?.rate_per_s)),
        _ => None,
    });
    let mut fixed: Vec<(u32, f64)> = fixed.collect();
    fixed.sort_by_key(|(connections, _)| *connections);
    let one = fixed.iter().find(|(connections, _)| *connections == 1)?.1;
    let most = fixed.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (enough, rate) = *fixed.iter().find(|(_, rate)| *rate >= CLOSE_SHARE * most)?;
    Some(format!(
        "Yes: with {} calls in flight, {enough} connections to {target} move {} as much as one. More than that gain \
         little.",
        gain.in_flight,
        times(rate / one)
    ))
}

/// The first thing to know of the study; `None` when nothing was measured.
pub(crate) fn answer(channels: &Channels, verdicts: &[Verdict], settings: &Settings) -> Option<String> {
    if settings.target.is_some() {
        return advised(channels, verdicts, settings);
    }
    let limited = verdicts.iter().filter_map(|verdict| {
        let is_channel = matches!(verdict.judgement.limit, Limit::Channel | Limit::Streams);
        Some((verdict, verdict.judgement.gain.as_ref().filter(|_| is_channel)?))
    });
    let most = limited.max_by(|(_, a), (_, b)| a.factor.total_cmp(&b.factor));
    match most {
        Some((verdict, gain)) => Some(format!(
            "One connection limits {}: with {} calls in flight and {}, several move {} as much.",
            verdict.stack,
            gain.in_flight,
            network(verdict.round_trip),
            times(gain.factor),
        )),
        None if verdicts.is_empty() => None,
        None => Some("No stack gains from more than one connection here.".to_owned()),
    }
}

/// Clients and servers without their variants, in the order of measuring.
fn stacks(channels: &Channels) -> Vec<(String, String)> {
    let mut stacks = Vec::new();
    for (pair, _) in channels.ways() {
        let stack = of(pair);
        if !stacks.contains(&stack) {
            stacks.push(stack);
        }
    }
    stacks
}

fn of(pair: &Pair) -> (String, String) {
    (pair.client.name().to_owned(), pair.server.name().to_owned())
}

fn verdict(
    channels: &Channels,
    panel: &Panel,
    stack: &(String, String),
    settings: &Settings,
) -> Option<Verdict> {
    let lines: Vec<&Line> = panel.lines.iter().filter(|line| of(&line.pair) == *stack).collect();
    let one = lines.iter().find(|line| line.strategy == Strategy::Fixed(1))?;
    let others = lines.iter().filter(|it| !matches!(it.strategy, Strategy::Fixed(1) | Strategy::PerCall));
    let scene = Scene {
        round_trip_ns: panel.round_trip.as_nanos() as f64,
        one: way(one),
        others: others.map(|line| way(line)).collect(),
        client_processors: settings.client_cpus.as_ref().map(|cpus| cpus.as_slice().len() as f64),
        server_processors: settings.server_cpus.as_ref().map(|cpus| cpus.as_slice().len() as f64),
        noise: channels.noise,
    };
    let judgement = judge(&scene)?;
    let mut text = vec![seen(&judgement, &scene)];
    text.extend(crowded(one));
    text.extend(silence(one));
    text.extend(lines.iter().filter_map(|line| shared(line)));
    text.extend(adaptive(&lines));
    let (client, server) = stack;
    let server = settings.target.as_ref().unwrap_or(server);
    Some(Verdict {
        stack: if client == server { client.clone() } else { format!("{client} → {server}") },
        call: panel.call,
        round_trip: panel.round_trip,
        advice: advice(&judgement, lines.iter().any(|line| line.strategy == Strategy::Adaptive)),
        judgement,
        text: text.join(" "),
    })
}

fn way(line: &Line) -> Way {
    let reached = line.cells.iter().map(|cell| Reached {
        in_flight: cell.in_flight,
        rate_per_s: cell.rate_per_s,
        connections: cell.connections,
        client_processors: cell.client.map(|used| used.processors),
        server_processors: cell.server.map(|used| used.processors),
    });
    Way { name: line.label(), reached: reached.collect() }
}

/// What was seen over one connection.
fn seen(judgement: &Judgement, scene: &Scene) -> String {
    let Judgement { limit, knee, gain, last, streams } = judgement;
    let reached =
        format!("{} in flight over one connection move {}/s", last.in_flight, count(last.rate_per_s));
    let behind = match knee {
        Some(knee) => format!("; from {knee} in flight on that is less than half of ideal scaling"),
        None => String::new(),
    };
    let busy = busy(last, scene).map(|busy| format!(" {busy}.")).unwrap_or_default();
    let gained = gain.as_ref().map(|gain| format!(" {}", gained(gain))).unwrap_or_default();
    let what = match limit {
        Limit::Nothing => "Nothing limits it yet: the rate grows with the calls in flight.".to_owned(),
        Limit::Network => {
            "Calls wait for the network: the rate grows with the calls in flight.".to_owned()
        }
        Limit::Channel => "The single connection limits the client.".to_owned(),
        Limit::Streams => format!(
            "At most some {} calls run on a connection at once: the server's limit of concurrent streams, or its \
             flow control, limits it.",
            count(streams.unwrap_or_default().round())
        ),
        Limit::ClientCpu => "The client's processors limit it: more connections gain nothing.".to_owned(),
        Limit::Server => "The server's processors limit it: more connections gain nothing.".to_owned(),
        Limit::Both => "Both sides' processors limit it: more connections gain nothing.".to_owned(),
        Limit::Unknown => {
            "Neither connections nor processors limit it. What remains: wake-ups, and other programs on the machine."
                .to_owned()
        }
    };
    format!("{what} {reached}{behind}.{gained}{busy}")
}

fn gained(gain: &Gain) -> String {
    let connections = match gain.connections {
        Some(1) | None => String::new(),
        Some(connections) => format!(" ({connections} connections in the kernel's tables)"),
    };
    format!(
        "With {} in flight “{}”{connections} moves {} as much; more connections gain from {} in flight on.",
        gain.in_flight,
        gain.way,
        times(gain.factor),
        gain.from
    )
}

/// How busy both sides were.
fn busy(last: &Reached, scene: &Scene) -> Option<String> {
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

/// That threads waited for processors which were not all busy with them: others ran there.
fn crowded(one: &Line) -> Option<String> {
    let last = one.cells.last()?;
    let sides = [("client", last.client?), ("server", last.server?)];
    let crowded = sides.into_iter().filter_map(|(side, used)| {
        let waiting = used.waiting.filter(|&waiting| waiting >= CROWDED)?;
        Some(format!("{waiting:.1} threads of the {side} were ready and waited for a processor"))
    });
    let crowded: Vec<String> = crowded.collect();
    (!crowded.is_empty()).then(|| format!("On average {}.", crowded.join(", ")))
}

/// How silent the wire of one connection was while calls were outstanding.
fn silence(one: &Line) -> Option<String> {
    let watched = |cell: &Cell| Some((cell.in_flight, cell.wire.clone()?));
    let (in_flight, wire) = one.cells.iter().rev().find_map(watched)?;
    (wire.all.share >= IDLE_SHARE && wire.all.gaps > 0).then(|| {
        format!(
            "With {in_flight} in flight, no byte was on the wire for {} of the time, in gaps of {} (median; p99 {}).",
            percent(wire.all.share),
            time(wire.all.p50_ns as f64),
            time(wire.all.p99_ns as f64)
        )
    })
}

/// Channels that are fewer connections than channels.
fn shared(line: &Line) -> Option<String> {
    let Strategy::Fixed(asked @ 2..) = line.strategy else { return None };
    let cell = line.cells.iter().rev().find(|cell| cell.in_flight >= asked)?;
    let there = cell.connections.filter(|&there| there < asked)?;
    let connections = if there == 1 { "one connection" } else { "fewer connections" };
    Some(format!(
        "The {asked} channels of “{}” share {connections}: the kernel counts {there}.",
        line.label()
    ))
}

/// How the channel that finds its own number did beside the best of the others.
fn adaptive(lines: &[&Line]) -> Option<String> {
    let adaptive = lines.iter().find(|line| line.strategy == Strategy::Adaptive)?;
    let shares = adaptive.cells.iter().filter_map(|cell| {
        let others = lines.iter().filter(|line| line.strategy != Strategy::Adaptive);
        let rates = others.filter_map(|line| Some(line.at(cell.in_flight)?.rate_per_s));
        let best = rates.reduce(f64::max).filter(|&best| best > 0.0)?;
        Some((cell, cell.rate_per_s / best))
    });
    let (cell, share) = shares.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let lanes = adaptive.cells.iter().filter_map(|cell| cell.connections).max();
    let most = lanes
        .map(|lanes| format!(", with {} at most", counted(lanes.into(), "connection")))
        .unwrap_or_default();
    Some(if share >= CLOSE_SHARE {
        format!("The adaptive channel is within 5 % of the best fixed number everywhere{most}.")
    } else {
        format!(
            "The adaptive channel reaches {} of the best at its worst point, {} in flight{most}.",
            percent(share),
            cell.in_flight
        )
    })
}

fn advice(judgement: &Judgement, has_adaptive: bool) -> String {
    let enough = judgement.gain.as_ref().and_then(|gain| gain.connections);
    let several = match enough {
        Some(connections @ 2..) => format!("Use {connections} connections"),
        _ => "Use several connections".to_owned(),
    };
    let by_itself = if has_adaptive { ", or let the channel find the number (adaptive lanes)" } else { "" };
    match judgement.limit {
        Limit::Nothing => {
            "Keep more calls in flight to move more; more connections would not help.".to_owned()
        }
        Limit::Network => {
            "Keep more calls in flight, or shorten the round trip; more connections would not help."
                .to_owned()
        }
        Limit::Channel => format!("{several}{by_itself}."),
        Limit::Streams => {
            format!(
                "Raise the server's limit of concurrent streams, or its flow-control windows. \
                     {several}{by_itself}."
            )
        }
        Limit::ClientCpu => "Give the client more processors or threads; keep one connection.".to_owned(),
        Limit::Server => "Give the server more processors, or make its handlers cheaper.".to_owned(),
        Limit::Both => "Give both sides more processors; keep one connection.".to_owned(),
        Limit::Unknown => {
            "Measure on an idle machine; then check wake-ups and which processors the threads run on."
                .to_owned()
        }
    }
}
