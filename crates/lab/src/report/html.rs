//! A study as one self-contained page. The words and the table are written here; the plots are drawn by the page.

use serde::Serialize;

use crate::analyse::{
    Analysis, Cell, Kind, Line, PLATEAU_FACTOR, analyse, answer, doubts, findings, headlines,
};
use crate::figures::{bound, count, percent, span, throughput, time};
use crate::plan::{Pattern, Point, Work};
use crate::record::{CallType, LoadResult, Spike};
use crate::results::{LabResults, Outcome, PointResult};

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");

/// Doubts beyond this many are folded away.
const DOUBTS_OPEN: usize = 3;

/// The study as a page that opens without a network.
pub fn html(results: &LabResults) -> String {
    let analysis = analyse(results);
    filled(
        TEMPLATE,
        &[
            ("title", escaped(&format!("Message {} study, thalweg lab", results.study))),
            ("uplot_css", UPLOT_STYLE.to_owned()),
            ("css", STYLE.to_owned()),
            ("eyebrow", escaped(&eyebrow(results))),
            (
                "answer",
                escaped(
                    &answer(&analysis).map_or("Nothing was measured.".to_owned(), |answer| bound(&answer)),
                ),
            ),
            ("where", escaped(&place(results))),
            ("headlines", cards(&analysis)),
            ("doubts", doubts_section(&doubts(results))),
            ("findings", findings_list(&analysis)),
            ("spikes", spikes_table(&analysis)),
            ("transport_options", options(analysis.transports().iter().map(ToString::to_string))),
            ("kind_options", options(kinds(&analysis).into_iter().map(Kind::label))),
            ("table", figures_table(results, &analysis)),
            ("method", method(results)),
            ("facts", facts(results)),
            ("version", escaped(&results.versions.thalweg)),
            ("data", plot_data(&analysis)),
            ("uplot_js", UPLOT_SCRIPT.to_owned()),
            ("js", SCRIPT.to_owned()),
        ],
    )
}

/// Puts the values in the places of their names. What is put in is not searched for names again.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut text =
        String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("each place in our template is closed");
        let (_, value) = values.iter().find(|(known, _)| *known == name).expect("each place has its value");
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text + rest
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn concat(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

fn eyebrow(results: &LabResults) -> String {
    let day = results.started.split('T').next().unwrap_or_default();
    let took = took(results).map(|took| format!(", took {took}")).unwrap_or_default();
    format!("Message {} study · {day}{took}", results.study)
}

fn took(results: &LabResults) -> Option<String> {
    let started = humantime::parse_rfc3339(&results.started).ok()?;
    let ended = humantime::parse_rfc3339(&results.ended).ok()?;
    ended.duration_since(started).ok().map(span)
}

fn place(results: &LabResults) -> String {
    let machine = &results.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    format!(
        "thalweg {} at both ends, on {} with {} {cores}, {}.",
        results.versions.thalweg, machine.cpu, machine.cores, machine.kernel
    )
}

fn cards(analysis: &Analysis) -> String {
    let card = |headline: crate::analyse::Headline| {
        format!(
            r#"<div class="card"><h2>{}</h2><p class="figure">{}</p><p>{}</p></div>"#,
            escaped(headline.name),
            escaped(&bound(&headline.figure)),
            escaped(&bound(&headline.detail))
        )
    };
    concat(headlines(analysis).into_iter().map(card))
}

fn doubts_section(doubts: &[String]) -> String {
    if doubts.is_empty() {
        return String::new();
    }
    let items =
        |doubts: &[String]| concat(doubts.iter().map(|doubt| format!("<li>{}</li>", escaped(&bound(doubt)))));
    let (open, folded) = doubts.split_at(doubts.len().min(DOUBTS_OPEN));
    let folded = match folded.len() {
        0 => String::new(),
        more => format!("<details><summary>{more} more</summary><ul>{}</ul></details>", items(folded)),
    };
    format!(
        r#"<section class="doubts"><h2>Before you use these figures</h2><ul>{}</ul>{folded}</section>"#,
        items(open)
    )
}

fn findings_list(analysis: &Analysis) -> String {
    concat(findings(analysis).iter().map(|finding| {
        format!("<dt>{}</dt><dd><p>{}</p></dd>", escaped(finding.topic), escaped(&bound(&finding.text)))
    }))
}

fn options(names: impl Iterator<Item = String>) -> String {
    concat(names.map(|name| format!("<option>{}</option>", escaped(&name))))
}

/// Of each line of calls the wait that lies farthest from the median beside it, farthest first.
fn spikes_table(analysis: &Analysis) -> String {
    let ratio = |cell: &Cell, spike: Spike| spike.latency_ns as f64 / cell.latency.p50.max(1) as f64;
    let mut spikes: Vec<(&Line, &Cell, Spike)> = analysis
        .calls()
        .filter_map(|line| {
            let all = line.cells.iter().filter_map(|cell| Some((line, cell, *cell.spikes.first()?)));
            all.max_by(|(_, a, s), (_, b, t)| ratio(a, *s).total_cmp(&ratio(b, *t)))
        })
        .collect();
    spikes.sort_by(|(_, a, s), (_, b, t)| ratio(b, *t).total_cmp(&ratio(a, *s)));
    let rows = concat(spikes.into_iter().map(|(line, cell, spike)| {
            format!(
                r#"<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ×</td><td>{}</td></tr>"#,
                escaped(&line.kind.label()),
                time(spike.latency_ns as f64),
                cell.size,
                line.transport,
                time(cell.latency.p50 as f64),
                count(ratio(cell, spike)),
                time(spike.at_ns as f64)
            )
        }));
    let heads = ["Wait", "Size", "Transport", "Median there", "Wait / median", "After"];
    let heads = heads.map(|head| format!(r#"<th scope="col">{head}</th>"#)).concat();
    format!(
        r#"<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">Work</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
}

/// The columns of the table of all figures behind its first one. Words stand to the left.
const COLUMNS: [(&str, bool); 20] = [
    ("Transport", true),
    ("Size", false),
    ("Rate", false),
    ("Throughput", false),
    ("Of socket", false),
    ("Median", false),
    ("p90", false),
    ("p99", false),
    ("p99.9", false),
    ("p99.99", false),
    ("Max", false),
    ("Mean", false),
    ("Min", false),
    ("CPU", false),
    ("Operations", false),
    ("Calls", false),
    ("Errors", false),
    ("Connections", false),
    ("Measured for", false),
    ("Notes", true),
];

fn figures_table(results: &LabResults, analysis: &Analysis) -> String {
    let heads = COLUMNS.map(|(name, words)| {
        let class = if words { r#" class="words""# } else { "" };
        format!(r#"<th scope="col"{class}><button type="button">{name}</button></th>"#)
    });
    let heads = heads.concat();
    let rows = concat(results.points.iter().map(|result| row(result, analysis)));
    format!(
        r#"<div class="scroll" tabindex="0"><table><thead><tr><th scope="col"><button type="button">Work</button></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
}

fn row(result: &PointResult, analysis: &Analysis) -> String {
    let point = &result.point;
    let kind = Kind { work: point.work, in_flight: point.in_flight };
    let class = if matches!(point.work, Work::Socket(_)) { r#" class="limit""# } else { "" };
    let label = escaped(&kind.label());
    let figures = match &result.outcome {
        Outcome::Measured(measured) => measured_cells(measured, point, analysis),
        Outcome::Failed(reason) => {
            format!(r#"<td class="words failed" colspan="{}">{}</td>"#, COLUMNS.len() - 2, escaped(reason))
        }
    };
    format!(
        r#"<tr{class} data-transport="{transport}" data-kind="{label}"><th scope="row">{label}</th><td class="words">{transport}</td>{size}{figures}</tr>"#,
        transport = point.transport,
        size = cell(Some(point.size_bytes.0 as f64), |_| point.size_bytes.to_string()),
    )
}

fn measured_cells(measured: &LoadResult, point: &Point, analysis: &Analysis) -> String {
    let kind = Kind { work: point.work, in_flight: point.in_flight };
    let line = analysis.line(kind, point.transport);
    let share = line.and_then(|line| line.at(point.size_bytes)?.share_of_socket);
    let bytes_per_s = measured.rate_per_s * point.size_bytes.0 as f64;
    let cpu = measured.client_cpu_per_call.map(|cpu| cpu.user_ns + cpu.system_ns);
    let latency = measured.latency_ns;
    let latencies = [
        latency.map(|l| l.p50 as f64),
        latency.map(|l| l.p90 as f64),
        latency.map(|l| l.p99 as f64),
        latency.map(|l| l.p99_9 as f64),
        latency.map(|l| l.p99_99 as f64),
        latency.map(|l| l.max as f64),
        latency.map(|l| l.mean),
        latency.map(|l| l.min as f64),
        cpu,
    ];
    let notes: Vec<_> = measured.notes.iter().map(|note| note.text.as_str()).collect();
    let connections = measured.connections;
    let established = connections.established.map_or("?".to_owned(), |n| n.to_string());
    let errors = measured.error_count();
    let shown_errors = match errors {
        0 => "0".to_owned(),
        _ => measured.errors.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", "),
    };
    [
        cell(Some(measured.rate_per_s), |rate| format!("{}/s", count(rate))),
        cell(Some(bytes_per_s), throughput),
        cell(share, percent),
        latencies.map(|latency| cell(latency, time)).concat(),
        cell(Some(measured.messages as f64), count),
        cell(Some(measured.calls as f64), count),
        cell(Some(errors as f64), |_| shown_errors),
        cell(connections.established.map(f64::from), |_| {
            if connections.established == Some(connections.asked) {
                established
            } else {
                format!("{established} of {}", connections.asked)
            }
        }),
        cell(Some(measured.duration_ns as f64), time),
        format!(r#"<td class="words">{}</td>"#, escaped(&notes.join("; "))),
    ]
    .concat()
}

/// A cell that sorts by its value, whatever unit it is shown in.
fn cell(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) => format!(r#"<td data-v="{value}">{}</td>"#, escaped(&show(value))),
        None => r#"<td data-v="">–</td>"#.to_owned(),
    }
}

fn method(results: &LabResults) -> String {
    let settings = &results.settings;
    let pinned = match (&settings.client_cpus, &settings.server_cpus) {
        (Some(client), Some(server)) => format!(
            "Client and server are processes apart, kept on processors apart: the client on {client}, the server on \
             {server}. The threads of the bare socket are kept on the same."
        ),
        _ => "Client and server are processes apart that share one processor.".to_owned(),
    };
    let in_flight = results.points.iter().map(|result| result.point.in_flight).max().unwrap_or(1);
    let times = results.points.first().map(|result| {
        let (warmup, measured) = (result.point.warmup.as_nanos() as f64, result.point.duration.as_nanos() as f64);
        format!(
            "Each point is driven for {} that do not count, so that connections, caches and windows are warm, and then \
             measured for {}.",
            time(warmup),
            time(measured)
        )
    });
    let sentences = [
        Some(pinned),
        Some(
            "The load is a closed loop: a call waits for the one before it. Latency tells how long calls take once they \
             are made, not how long they would wait in a queue."
                .to_owned(),
        ),
        Some(format!(
            "Unary calls are made one at a time, and with {in_flight} in flight on one connection. Streams are one per \
             connection and pipelined: the driver hands messages over as fast as flow control takes them; of a bidi \
             stream up to 1 MiB or 4096 messages await their echo."
        )),
        Some(
            "All four kinds of call start their clock when a message is handed to the library, before it is encoded. \
             It stops for unary calls and bidi streams when the answer is in hand, for client streams when the next \
             message may be handed over, for server streams when the next message is in hand."
                .to_owned(),
        ),
        times,
        Some(
            "One monotonic clock. Percentiles are from HDR histograms of three digits; minimum, mean and maximum are \
             exact. A status other than OK is an error and no latency. Connections are counted in the kernel."
                .to_owned(),
        ),
        Some(
            "The bare socket moves the same payloads, each with gRPC’s five bytes of prefix and nothing else, in the \
             same run: as an echo with as many under way, or one way; the fastest of three connections counts. It is the limit."
                .to_owned(),
        ),
        Some(format!(
            "A latency plateau is the median of the three smallest sizes; a size has left it when its median latency, \
             and that of every larger size, is above {PLATEAU_FACTOR} times that."
        )),
    ];
    concat(sentences.into_iter().flatten().map(|sentence| format!("<li>{}</li>", escaped(&bound(&sentence)))))
}

fn facts(results: &LabResults) -> String {
    let (machine, settings, versions) = (&results.machine, &results.settings, &results.versions);
    let memory = match machine.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    };
    let facts = [
        ("Command", format!("thalweg {}", settings.arguments.join(" "))),
        ("Started", results.started.clone()),
        ("Took", took(results).unwrap_or_default()),
        ("Points", format!("{} of {}", results.points.len(), results.planned)),
        ("Processor", machine.cpu.clone()),
        ("Cores", machine.cores.to_string()),
        ("Memory", memory),
        ("Kernel", machine.kernel.clone()),
        ("thalweg", format!("{} ({} build)", versions.thalweg, versions.build)),
        ("Schema", results.schema.clone()),
    ];
    facts.map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(&value))).concat()
}

/// What the page's script draws.
#[derive(Serialize)]
struct PlotData {
    sizes: Vec<PlotSize>,
    transports: Vec<String>,
    kinds: Vec<PlotKind>,
    lines: Vec<PlotLine>,
}

#[derive(Serialize)]
struct PlotSize {
    bytes: u64,
    label: String,
}

#[derive(Serialize)]
struct PlotKind {
    id: String,
    label: String,
    /// A custom property of the style sheet.
    colour: &'static str,
    /// Not shown until asked for.
    hidden: bool,
}

/// A column for each figure, as long as there are sizes.
#[derive(Serialize)]
struct PlotLine {
    kind: String,
    transport: String,
    p50: Vec<Option<f64>>,
    mean: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    p99_99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    rate: Vec<Option<f64>>,
    throughput: Vec<Option<f64>>,
}

fn plot_data(analysis: &Analysis) -> String {
    let sizes = analysis.sizes();
    let lines = analysis.lines.iter().map(|line| {
        let column = |figure: fn(&Cell) -> f64| {
            sizes.iter().map(|&size| line.at(size).map(figure)).collect::<Vec<_>>()
        };
        PlotLine {
            kind: kind_id(line.kind),
            transport: line.transport.to_string(),
            p50: column(|cell| cell.latency.p50 as f64),
            mean: column(|cell| cell.latency.mean),
            p99: column(|cell| cell.latency.p99 as f64),
            p99_99: column(|cell| cell.latency.p99_99 as f64),
            max: column(|cell| cell.latency.max as f64),
            rate: column(|cell| cell.rate_per_s),
            throughput: column(|cell| cell.bytes_per_s),
        }
    });
    let data = PlotData {
        lines: lines.collect(),
        kinds: kinds(analysis)
            .into_iter()
            .map(|kind| PlotKind {
                id: kind_id(kind),
                label: kind.label(),
                colour: colour(kind),
                // The lower bound of latency and the upper bound of throughput are enough for a first look.
                hidden: match kind.work {
                    Work::Call(_) | Work::Socket(Pattern::OneWay) => false,
                    Work::Socket(Pattern::Echo) => kind.in_flight > 1,
                    Work::Socket(Pattern::Pipelined) => true,
                },
            })
            .collect(),
        transports: analysis.transports().iter().map(ToString::to_string).collect(),
        sizes: sizes.iter().map(|&size| PlotSize { bytes: size.0, label: size.to_string() }).collect(),
    };
    // Within a script element only `<` could end it or begin a comment.
    serde_json::to_string(&data).expect("the data has string keys only").replace('<', "\\u003c")
}

fn kinds(analysis: &Analysis) -> Vec<Kind> {
    let mut kinds: Vec<_> = analysis.lines.iter().map(|line| line.kind).collect();
    kinds.dedup();
    kinds
}

fn kind_id(kind: Kind) -> String {
    format!("{}-{}", kind.work, kind.in_flight)
}

fn colour(kind: Kind) -> &'static str {
    match kind.work {
        Work::Call(CallType::Unary) if kind.in_flight == 1 => "unary-one",
        Work::Call(call) => call.name(),
        Work::Socket(_) => "socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_a_template_is_not_searched_again() {
        let values = [("a", "{{b}}".to_owned()), ("b", "x".to_owned())];
        assert_eq!(filled("<{{a}}|{{b}}>", &values), "<{{b}}|x>");
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped(r#"<b a="1">&"#), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
