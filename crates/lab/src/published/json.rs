//! gRPC against a JSON API on the JVM.

use std::time::Duration;

use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;
use super::judgement::{Figure, Judgement, Verdict, is_near};
use super::jvm_log::Meanwhile;
use super::original::{Extent, Flaw, Original, Run};
use crate::echo::Protocol;
use crate::figures::{grouped, time, times};
use crate::json::{Case, Cell, Cells, Json, JsonResults, Purpose, Way, WindowResult};
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
        Extent::Whole => "lab json --against spring,lognet --messages person --budget 27min",
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
    Ok(Way { stack: stack.parse().map_err(|_| format!("{stack} is no stack"))?, protocol })
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
const UNUSABLE: &str =
    "none of its windows could be used: they failed, or other programs ran; the study’s page has why";

/// A part of the first calls and of warm ones, ns.
struct Part {
    cold: f64,
    warm: f64,
}

fn part(cell: &Cell, of: fn(&Cell) -> Option<(f64, f64)>) -> Result<Part, String> {
    let (cold, warm) = of(cell).ok_or_else(|| format!("{}: {UNUSABLE}", cell.way))?;
    Ok(Part { cold, warm })
}

fn judged(
    evidence: &Evidence,
    published: f64,
    of: fn(&Cell) -> Option<(f64, f64)>,
    what: &str,
) -> Result<Judgement, String> {
    let results = evidence.json(RUN)?;
    let (stack, Both { grpc, json }) = of_original(results)?;
    let (grpc, json) = (part(&grpc, of)?, part(&json, of)?);
    let (cold, warm) = (json.cold / grpc.cold, json.warm / grpc.warm);
    let figures = vec![
        Figure::time(format!("{stack}, gRPC, {what} of the first calls"), grpc.cold),
        Figure::time(format!("{stack}, JSON, {what} of the first calls"), json.cold),
        Figure::time(format!("{stack}, gRPC, {what}, warm"), grpc.warm),
        Figure::time(format!("{stack}, JSON, {what}, warm"), json.warm),
        Figure::ratio("JSON ÷ gRPC, first calls", cold),
        Figure::ratio("JSON ÷ gRPC, warm", warm),
    ];
    let cause = format!(
        "Of calls 2 to 51 of a server that was just started: one start, so that the factor has no interval. Warm it is \
         {}: {} by gRPC and {} by JSON.",
        times(warm),
        time(grpc.warm),
        time(json.warm)
    );
    let stands_in = if stack == LOGNET { "" } else { ", in the place of LogNet’s starter" };
    let said =
        format!("{stack}{stands_in}: {} against {} ({})", time(grpc.cold), time(json.cold), times(cold));
    Ok(Judgement {
        verdict: Verdict::of(cold > DIFFERS, is_near(cold, published)),
        ours: said,
        cause,
        figures,
    })
}

fn request(evidence: &Evidence) -> Result<Judgement, String> {
    judged(
        evidence,
        7.16 / 2.92,
        |cell| Some((cell.cold.as_ref()?.request(), cell.latency.as_ref()?.request())),
        "request",
    )
}

fn response(evidence: &Evidence) -> Result<Judgement, String> {
    judged(
        evidence,
        12.78 / 3.6,
        |cell| Some((cell.cold.as_ref()?.response(), cell.latency.as_ref()?.response())),
        "response",
    )
}

/// Whether the first calls say what later ones do.
fn few(evidence: &Evidence) -> Result<Judgement, String> {
    /// They say the same.
    const SAME: f64 = 1.25;
    let results = evidence.json(RUN)?;
    let (stack, Both { grpc, json }) = of_original(results)?;
    let means = |cell: &Cell| {
        Some((cell.cold.as_ref()?.next.mean, cell.latency.as_ref()?.all.mean, cell.cold.as_ref()?.calls))
    };
    let ((grpc_cold, grpc_warm, calls), (json_cold, json_warm, _)) =
        means(&grpc).zip(means(&json)).ok_or(UNUSABLE)?;
    let (cold, warm) = (json_cold / grpc_cold, json_warm / grpc_warm);
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
    let said = format!("{stack}: {} of the first {calls}, {} warm", times(cold), times(warm));
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
}

impl Slow {
    /// A tenth of it at least was a pause, or methods were compiled.
    fn is_explained(&self) -> bool {
        self.meanwhile
            .is_some_and(|it| it.compiled > 0 || it.paused.as_nanos() * 10 >= u128::from(self.took_ns))
    }
}

/// The slowest calls of servers on the JVM, first ones and warm ones, the slowest first.
fn slow(evidence: &Evidence) -> Result<Vec<Slow>, String> {
    /// So many of each window are listed.
    const OF_WINDOW: usize = 3;
    const MOST: usize = 16;
    let results = evidence.json(RUN)?;
    let log = evidence.jvm_log(RUN);
    let is_of = |it: &&WindowResult| {
        [LOGNET, SPRING].contains(&it.window.way.stack.name())
            && it.window.case == Case::plain(results.settings.published)
            && matches!(it.window.purpose, Purpose::Latency | Purpose::Cold)
    };
    let mut all = Vec::new();
    for result in results.windows.iter().filter(is_of) {
        let Some(load) = result.good() else { continue };
        let began = humantime::parse_rfc3339(&load.started).ok();
        all.extend(load.spikes.iter().take(OF_WINDOW).map(|spike| {
            let ended = began.map(|began| began + Duration::from_nanos(spike.at_ns));
            let span = ended.map(|ended| (ended - Duration::from_nanos(spike.took_ns), ended));
            Slow {
                way: result.window.way.to_string(),
                is_first: result.window.purpose == Purpose::Cold,
                took_ns: spike.took_ns,
                at_ns: spike.at_ns,
                meanwhile: log.zip(span).map(|(log, (from, to))| log.within(from, to)),
            }
        }));
    }
    all.sort_by_key(|slow| std::cmp::Reverse(slow.took_ns));
    all.truncate(MOST);
    if all.is_empty() { Err("no call of a server on the JVM was measured".to_owned()) } else { Ok(all) }
}

fn spikes(evidence: &Evidence) -> Result<Judgement, String> {
    let results = evidence.json(RUN)?;
    let slow = slow(evidence)?;
    if slow.iter().all(|slow| slow.meanwhile.is_none()) {
        return Err("the virtual machines left no log beside the results of this run".to_owned());
    }
    let explained = slow.iter().filter(|slow| slow.is_explained()).count();
    let longest = slow.first().map_or(0, |slow| slow.took_ns);
    let warm = slow.iter().find(|slow| !slow.is_first).map_or(0, |slow| slow.took_ns);
    let (stack, both) = of_original(results)?;
    let first = both.json.cold.as_ref().map_or(0, |cold| cold.first_ns);
    let of_all = slow.len();
    let figures = vec![
        Figure::time("the slowest call", longest as f64),
        Figure::time("the slowest warm call", warm as f64),
        Figure::time(format!("{stack}, JSON, the very first call"), first as f64),
        Figure::number("slow calls with the JVM at work meanwhile", explained as f64),
        Figure::number("slow calls that were looked at", of_all as f64),
    ];
    let beside = |is_so: fn(&Meanwhile) -> bool| {
        slow.iter().filter(|slow| slow.meanwhile.as_ref().is_some_and(is_so)).count()
    };
    let (paused, compiled) = (beside(|it| it.pauses > 0), beside(|it| it.compiled > 0));
    let cause = format!(
        "Of the {of_all} slowest calls the virtual machine paused during {paused} and compiled methods during \
         {compiled}, by its own log. Left out they are no part of an average; users of the service meet them."
    );
    let verdict = Verdict::of(longest >= SPIKE_NS / 3, longest * 3 >= SPIKE_NS * 2);
    let said = format!(
        "the slowest {}, warm {}; {explained} of {of_all} with the JVM at work",
        time(longest as f64),
        time(warm as f64)
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
        "What the JVM’s own log says of the time in which a call was under way, to a millisecond.",
        &["Server", "Call", "Took", "Into its window", "Pauses", "Methods compiled"],
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
