//! gRPC against a JSON API on the JVM.

use std::fmt;
use std::time::{Duration, SystemTime};

use thalweg_measure::figures::{grouped, percent, ratio_text, time, times};

use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;
use super::judgement::{Figure, Judgement, Verdict, is_near};
use super::jvm_log::{JvmLog, Meanwhile};
use super::original::{Extent, Flaw, Original, Run};
use crate::echo::Protocol;
use crate::json::{Case, Cell, Cells, Cold, Json, JsonResults, Latencies, Purpose, Start, Way, WindowResult};
use crate::report::grid::Field;
use crate::study::Study;

pub(super) const ORIGINAL: Original = Original {
    title: "gRPC against a JSON API on the JVM",
    source: "a server on Spring Boot with LogNet’s gRPC starter and a JSON API beside it, as published",
    method: &[
        "5,000 strings of 20 characters are sent and sent back, by gRPC and by JSON over HTTP/1.1, on one machine.",
        "1 to 50 requests; the time until the handler has the message, and from there on, apart; averages.",
    ],
    claims: CLAIMS,
    flaws: FLAWS,
    runs,
    tables,
};

const RUN: &str = "json";
/// Whose servers: the original’s, and the one that is kept up today.
const LOGNET: &str = "lognet";
const SPRING: &str = "spring";
/// The smaller one of the spikes that were published.
const SPIKE_NS: u64 = 30_000_000;
/// A difference that counts.
const DIFFERS: f64 = 1.1;

fn runs(extent: Extent) -> Vec<Run> {
    let words = match extent {
        Extent::Quick => "lab json --quick --against spring,lognet --messages strings:1x20 --budget 220s",
        Extent::Whole => "lab json --against spring,lognet --messages person --budget 30min",
    };
    let about = "Spring Boot with LogNet’s starter and with Spring gRPC, and our server: first calls as published, \
                 and warm";
    vec![Run { keeps_jvm_logs: true, ..Run::new(RUN, about, words) }]
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "request",
        text: "A request reaches its handler sooner by gRPC.",
        published: "2.92 against 7.16 ms (2.45 ×)",
        judge: request,
    },
    Claim {
        id: "response",
        text: "The response takes less time by gRPC.",
        published: "3.6 against 12.78 ms (3.55 ×)",
        judge: response,
    },
    Claim {
        id: "few",
        text: "Averages of 1 to 50 requests compare the two.",
        published: "1 to 50 requests",
        judge: few,
    },
    Claim {
        id: "spikes",
        text: "There are spikes of 30 and 90 ms.",
        published: "30 and 90 ms, left out",
        judge: spikes,
    },
];

const FLAWS: &[Flaw] = &[
    Flaw {
        what: "50 calls of a server that was just started",
        instead: "The first calls run code that is interpreted and load classes. They are measured here too, of a \
                  server started for them, and beside them calls of a server that is warm.",
    },
    Flaw {
        what: "The clocks of two processes",
        instead: "The time of a request was the difference of two processes’ wall clocks. Here all moments are of one \
                  monotonic clock that the processes of a machine share.",
    },
    Flaw {
        what: "Spikes left out",
        instead: "No call of a window is left out here. The slowest are listed with what the virtual machine did \
                  meanwhile: its log of pauses and compilations is joined in time.",
    },
    Flaw {
        what: "Kotlin",
        instead: "The original is in Kotlin, the peers here are in Java: both compile to the same bytecode for such a \
                  handler, and the libraries are the same.",
    },
];

/// The original’s system, by this protocol.
fn way(stack: &str, protocol: Protocol) -> Result<Way, String> {
    Ok(Way { stack: stack.parse().map_err(|_| format!("{stack} is not a stack"))?, protocol })
}

/// gRPC and JSON of the published message at this stack’s server.
struct Both {
    grpc: Cell,
    json: Cell,
}

fn both(results: &JsonResults, stack: &str) -> Result<Both, String> {
    let cells = Cells::of(results);
    let case = Case::plain(results.settings.published);
    let at = |protocol| -> Result<Cell, String> {
        let way = way(stack, protocol)?;
        cells.at(&way, case).cloned().ok_or_else(|| {
            let left_out = results.left_out.iter().find(|it| it.what.name() == stack);
            left_out
                .map_or_else(|| format!("{way} was not measured"), |it| format!("{}: {}", it.what, it.reason))
        })
    };
    Ok(Both { grpc: at(Protocol::Grpc)?, json: at(Protocol::JsonHttp1)? })
}

/// The system that the claims are judged by: the original’s, or Spring gRPC where that cannot be had.
fn of_original(results: &JsonResults) -> Result<(&'static str, Both), String> {
    match both(results, LOGNET) {
        Ok(both) => Ok((LOGNET, both)),
        Err(reason) => both(results, SPRING).map(|both| (SPRING, both)).map_err(|_| reason),
    }
}

/// Why there is no figure of a way that was measured.
const UNUSABLE: &str = "none of its windows is valid; the study’s page has why";

/// A part of a call: what a way's first calls have of it, one start of them, and warm ones. ns.
struct Part {
    cold: fn(&Cold) -> f64,
    start: fn(&Start) -> f64,
    warm: fn(&Latencies) -> f64,
}

fn judged(evidence: &Evidence, published: f64, part: &Part, what: &str) -> Result<Judgement, String> {
    let results = evidence.json(RUN)?;
    let (stack, both) = of_original(results)?;
    let (grpc, json) = (measured(&both.grpc)?, measured(&both.json)?);
    let first = json.0.ratio(grpc.0, part.start).ok_or(UNUSABLE)?;
    let (grpc_cold, json_cold) = ((part.cold)(grpc.0), (part.cold)(json.0));
    let (grpc_warm, json_warm) = ((part.warm)(grpc.1), (part.warm)(json.1));
    let warm = json_warm / grpc_warm;
    let figures = vec![
        Figure::time(format!("{stack}, gRPC, {what} of the first calls"), grpc_cold),
        Figure::time(format!("{stack}, JSON, {what} of the first calls"), json_cold),
        Figure::time(format!("{stack}, gRPC, {what}, warm"), grpc_warm),
        Figure::time(format!("{stack}, JSON, {what}, warm"), json_warm),
        Figure::ratio("JSON ÷ gRPC, first calls", first.ratio),
        Figure::ratio("JSON ÷ gRPC, warm", warm),
        Figure::number("starts of each server", first.pairs as f64),
    ];
    let starts = match first.pairs {
        1 => "one start of each server, so that the factor has no interval".to_owned(),
        pairs => format!("{pairs} starts of each server"),
    };
    let cause = format!(
        "Of calls 2 to 51 of a server that was just started: {starts}. Warm it is {}: {} by gRPC and {} by JSON.",
        times(warm),
        time(grpc_warm),
        time(json_warm)
    );
    let stands_in = if stack == LOGNET { "" } else { ", in the place of LogNet’s starter" };
    let said = format!(
        "{stack}{stands_in}: {} against {} ({})",
        time(grpc_cold),
        time(json_cold),
        ratio_text(first)
    );
    let is_sure = first.interval.is_none_or(|interval| interval.low > 1.0);
    let verdict = Verdict::of(first.ratio > DIFFERS && is_sure, is_near(first.ratio, published));
    Ok(Judgement { verdict, ours: said, cause, figures })
}

/// The first calls of a way, and warm ones.
fn measured(cell: &Cell) -> Result<(&Cold, &Latencies), String> {
    let both = cell.cold.as_ref().zip(cell.latency.as_ref());
    both.ok_or_else(|| format!("{}: {UNUSABLE}", cell.way))
}

fn request(evidence: &Evidence) -> Result<Judgement, String> {
    let part = Part { cold: Cold::request, start: |start| start.request, warm: Latencies::request };
    judged(evidence, 7.16 / 2.92, &part, "request")
}

fn response(evidence: &Evidence) -> Result<Judgement, String> {
    let part = Part { cold: Cold::response, start: |start| start.response, warm: Latencies::response };
    judged(evidence, 12.78 / 3.6, &part, "response")
}

/// Whether the first calls say what later ones do.
fn few(evidence: &Evidence) -> Result<Judgement, String> {
    /// They say the same.
    const SAME: f64 = 1.25;
    let results = evidence.json(RUN)?;
    let (stack, both) = of_original(results)?;
    let (grpc, json) = (measured(&both.grpc)?, measured(&both.json)?);
    let first = json.0.ratio(grpc.0, |start| start.all).ok_or(UNUSABLE)?;
    let (grpc_cold, json_cold) = (grpc.0.next.mean, json.0.next.mean);
    let (grpc_warm, json_warm) = (grpc.1.all.mean, json.1.all.mean);
    let (cold, warm, calls) = (first.ratio, json_warm / grpc_warm, grpc.0.calls);
    let is_same = (cold / warm).ln().abs() <= SAME.ln();
    let verdict = Verdict::of((cold > 1.0) == (warm > 1.0), is_same);
    let figures = vec![
        Figure::ratio(format!("{stack}, JSON ÷ gRPC, first {calls} calls"), cold),
        Figure::ratio(format!("{stack}, JSON ÷ gRPC, warm"), warm),
        Figure::ratio("gRPC, first calls ÷ warm", grpc_cold / grpc_warm),
        Figure::ratio("JSON, first calls ÷ warm", json_cold / json_warm),
    ];
    let cause = format!(
        "The first {calls} calls of a server take {} (gRPC) and {} (JSON) as long as later ones: they time how fast \
         either’s code is loaded and compiled.",
        times(grpc_cold / grpc_warm),
        times(json_cold / json_warm)
    );
    let said = format!("{stack}: {} of the first {calls}, {} warm", ratio_text(first), times(warm));
    Ok(Judgement { verdict, ours: said, cause, figures })
}

/// A slow call, and what the virtual machine did while it was under way.
struct Slow {
    way: String,
    is_first: bool,
    took_ns: u64,
    /// Since its window began.
    at_ns: u64,
    meanwhile: Option<Meanwhile>,
    /// In what part of spans as long, all over its window, it was at work too.
    by_chance: Option<f64>,
}

impl Slow {
    fn is_explained(&self) -> bool {
        self.meanwhile.is_some_and(|it| is_at_work(&it, Duration::from_nanos(self.took_ns)))
    }
}

/// A tenth of the span at least was a pause, or methods were compiled.
fn is_at_work(meanwhile: &Meanwhile, span: Duration) -> bool {
    meanwhile.compiled > 0 || meanwhile.paused * 10 >= span
}

/// In what part of spans as long as this, all over the window, the virtual machine was at work.
fn by_chance(log: &JvmLog, began: SystemTime, window: Duration, span: Duration) -> f64 {
    const SPANS: u32 = 200;
    let step = window.saturating_sub(span) / SPANS;
    let at_work = (0..SPANS)
        .map(|number| began + step * number)
        .filter(|&from| is_at_work(&log.within(from, from + span), span))
        .count();
    at_work as f64 / f64::from(SPANS)
}

/// The slowest calls of servers on the JVM, as many first ones as warm ones, the slowest first.
fn slow(evidence: &Evidence) -> Result<Vec<Slow>, String> {
    /// So many of each window are listed.
    const OF_WINDOW: usize = 3;
    const OF_KIND: usize = 8;
    let results = evidence.json(RUN)?;
    let log = evidence.jvm_log(RUN);
    let is_of = |it: &&WindowResult| {
        [LOGNET, SPRING].contains(&it.window.way.stack.name())
            && it.window.case == Case::plain(results.settings.published)
            && matches!(it.window.purpose, Purpose::Latency | Purpose::Cold)
    };
    let mut all = Vec::new();
    for result in results.windows.iter().filter(is_of) {
        let Some(load) = result.valid() else { continue };
        let began = humantime::parse_rfc3339(&load.started).ok();
        all.extend(load.spikes.iter().take(OF_WINDOW).map(|spike| {
            let ended = began.map(|began| began + Duration::from_nanos(spike.at_ns));
            let took = Duration::from_nanos(spike.took_ns);
            let span = ended.map(|ended| (ended - took, ended));
            let by_chance = |(log, began): (&JvmLog, SystemTime)| {
                by_chance(log, began, Duration::from_nanos(load.duration_ns), took)
            };
            Slow {
                way: result.window.way.to_string(),
                is_first: result.window.purpose == Purpose::Cold,
                took_ns: spike.took_ns,
                at_ns: spike.at_ns,
                meanwhile: log.zip(span).map(|(log, (from, to))| log.within(from, to)),
                by_chance: log.zip(began).map(by_chance),
            }
        }));
    }
    all.sort_by_key(|slow| std::cmp::Reverse(slow.took_ns));
    let (mut first, mut warm) = (0, 0);
    all.retain(|slow| {
        let seen = if slow.is_first { &mut first } else { &mut warm };
        *seen += 1;
        *seen <= OF_KIND
    });
    if all.is_empty() { Err("no call of a server on the JVM was measured".to_owned()) } else { Ok(all) }
}

/// How often the virtual machine was at work while slow calls of a kind were under way.
struct Busy {
    kind: &'static str,
    calls: usize,
    at_work: usize,
    /// Of as many spans as long, all over the same windows.
    by_chance: f64,
}

impl Busy {
    fn of(slow: &[Slow], is_first: bool) -> Self {
        let of_kind = || slow.iter().filter(|slow| slow.is_first == is_first);
        Self {
            kind: if is_first { "first" } else { "warm" },
            calls: of_kind().count(),
            at_work: of_kind().filter(|slow| slow.is_explained()).count(),
            by_chance: of_kind().filter_map(|slow| slow.by_chance).sum(),
        }
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, calls, at_work, by_chance } = self;
        write!(
            f,
            "{at_work} of the {calls} slowest {kind} calls, where {by_chance:.1} of as many spans as long, all over \
             the same windows, would meet it by chance"
        )
    }
}

fn spikes(evidence: &Evidence) -> Result<Judgement, String> {
    /// More often than chance has it.
    const MORE_OFTEN: f64 = 2.0;
    let results = evidence.json(RUN)?;
    let slow = slow(evidence)?;
    if slow.iter().all(|slow| slow.meanwhile.is_none()) {
        return Err("the virtual machines left no log beside the results of this run".to_owned());
    }
    let longest = slow.first().map_or(0, |slow| slow.took_ns);
    let warm_longest = slow.iter().find(|slow| !slow.is_first).map_or(0, |slow| slow.took_ns);
    let (stack, both) = of_original(results)?;
    let very_first = both.json.cold.as_ref().map_or(0, |cold| cold.first_ns);
    let (first, warm) = (Busy::of(&slow, true), Busy::of(&slow, false));
    let by_chance = |name: &str, calls: f64| Figure::new(name, calls, "", format!("{calls:.1}"));
    let paused = slow.iter().filter(|slow| slow.meanwhile.is_some_and(|it| it.pauses > 0)).count();
    let figures = vec![
        Figure::time("the slowest call", longest as f64),
        Figure::time("the slowest warm call", warm_longest as f64),
        Figure::time(format!("{stack}, JSON, the very first call"), very_first as f64),
        Figure::number("slow first calls", first.calls as f64),
        Figure::number("slow first calls with the JVM at work", first.at_work as f64),
        by_chance("slow first calls with the JVM at work, by chance", first.by_chance),
        Figure::number("slow warm calls", warm.calls as f64),
        Figure::number("slow warm calls with the JVM at work", warm.at_work as f64),
        by_chance("slow warm calls with the JVM at work, by chance", warm.by_chance),
    ];
    let why = if warm.at_work as f64 >= MORE_OFTEN * warm.by_chance && warm.at_work * 2 >= warm.calls {
        "That is why warm calls are slow at times."
    } else {
        "That alone does not say why a warm call is slow at times: it shares its processor with what else runs."
    };
    let cause = format!(
        "By its own log the virtual machine compiled methods or paused during {first}, and during {warm}. A server \
         that was just started compiles all the while. {why} {paused} of these calls met a pause. Left out they are no \
         part of an average; users of the service meet them."
    );
    let verdict = Verdict::of(longest >= SPIKE_NS / 3, longest * 3 >= SPIKE_NS * 2);
    let said = format!(
        "the slowest {} of first calls and {} of warm ones; the JVM at work during {} of {} and {} of {}",
        time(longest as f64),
        time(warm_longest as f64),
        first.at_work,
        first.calls,
        warm.at_work,
        warm.calls
    );
    Ok(Judgement { verdict, ours: said, cause, figures })
}

fn tables(evidence: &Evidence) -> Vec<Table> {
    let Ok(results) = evidence.json(RUN) else { return Vec::new() };
    let mut tables = vec![as_published(results), slow_calls(evidence)];
    tables.extend(open_questions(results));
    tables
}

/// Request and response, first calls and warm, of all servers.
fn as_published(results: &JsonResults) -> Table {
    let mut table = Table::new(
        "Request and response",
        "Means of the first calls of a server, the very first left out as it connects, and of a warm server with all \
         its spikes.",
        &[
            "Server",
            "Protocol",
            "Request, first",
            "Response, first",
            "Request, warm",
            "Response, warm",
            "p99, warm",
            "Longest, warm",
            "Calls, warm",
        ],
    );
    let cells = Cells::of(results);
    for cell in cells.of_case(Case::plain(results.settings.published)) {
        let (Some(cold), Some(warm)) = (&cell.cold, &cell.latency) else { continue };
        let mut row = vec![Field::words(cell.way.stack.to_string()), Field::words(cell.way.protocol.title())];
        let times_ns = [
            cold.request(),
            cold.response(),
            warm.request(),
            warm.response(),
            warm.all.p99 as f64,
            warm.all.max as f64,
        ];
        row.extend(times_ns.map(|ns| Field::figure((ns > 0.0).then_some(ns), time)));
        row.push(Field::figure(Some(warm.calls as f64), grouped));
        table.rows.push(row);
    }
    table
}

fn slow_calls(evidence: &Evidence) -> Table {
    let mut table = Table::new(
        "The slowest calls, and the virtual machine",
        "What the JVM’s own log says of the time in which a call was under way, to a millisecond; and in what part \
         of spans as long, all over the same window, it was at work.",
        &["Server", "Call", "Took", "Into its window", "Pauses", "Methods compiled", "By chance"],
    );
    for slow in slow(evidence).unwrap_or_default() {
        let (pauses, compiled) = match slow.meanwhile {
            Some(it) => (
                Field::figure(Some(it.paused.as_nanos() as f64), |ns| {
                    if it.pauses == 0 { "none".to_owned() } else { format!("{} in {}", time(ns), it.pauses) }
                }),
                Field::figure(Some(it.compiled as f64), grouped),
            ),
            None => (Field::figure(None, time), Field::figure(None, grouped)),
        };
        table.rows.push(vec![
            Field::words(slow.way),
            Field::words(if slow.is_first { "one of the first" } else { "warm" }),
            Field::figure(Some(slow.took_ns as f64), time),
            Field::figure(Some(slow.at_ns as f64), time),
            pauses,
            compiled,
            Field::figure(slow.by_chance, percent),
        ]);
    }
    table
}

/// What the original left open, as the study answers it.
fn open_questions(results: &JsonResults) -> Vec<Table> {
    let analysis = Json::analyse(results);
    let named = [
        ("networks", "Open there: a network that is not local"),
        ("connections", "Open there: a channel for each call"),
        ("messagepack", "Open there: MessagePack"),
        ("gateway", "Open there: JSON through a gateway"),
    ];
    let table = |(id, title): (&str, &str)| {
        let question = analysis.questions().iter().find(|question| question.id == id)?;
        let mut table = Table::new(title, &question.sentences.join(" "), &[]);
        table.heads.clone_from(&question.table.heads);
        table.rows.clone_from(&question.table.rows);
        Some(table)
    };
    named.into_iter().filter_map(table).collect()
}
