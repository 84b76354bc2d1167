//! What a comparison adds to the page: noise floor, tables of ratios, costs, and the matrix of clients and servers.

mod data;

use super::{AGAINST, concat, escaped, filled};
use crate::analyse::Kind;
use crate::analyse::bootstrap::Ratio;
use crate::analyse::compare::{
    Against, Aggregate, Compared, ComparedCell, Comparison, Floor, Tally, Verdict, contrasts,
    interval_figure, losses, ratio_figure, ratio_text, verdicts,
};
use crate::figures::{bound, percent};
use crate::plan::Transport;
use crate::results::LabResults;
use crate::size::ByteSize;
use crate::stack::Pair;

/// The deepest colour of a cell stands for a ratio of at least this or at most its inverse.
const DEEPEST: f64 = 8.0;
/// A table of more sizes than this is set closer.
const SIZES_WIDE: usize = 9;
/// With a floor above this share, real differences are called none.
const FLOOR_HIGH: f64 = 0.2;
/// Losses beyond this many are folded away.
const LOSSES_OPEN: usize = 6;

/// A card for each peer: the middle ratio, from where to where, and how many cells have which verdict.
pub(super) fn cards(comparison: &Comparison) -> String {
    concat(comparison.peers.iter().map(|pair| {
        let tally = comparison.tally(pair);
        let figure =
            comparison.middle(pair).map_or("–".to_owned(), |middle| format!("{} ×", ratio_figure(middle)));
        let ratios: Vec<f64> =
            comparison.against(pair).filter_map(|(_, it)| Some(it.rate.ratio?.ratio)).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let range = if ratios.is_empty() {
            "never measured beside ours".to_owned()
        } else {
            format!(
                "{pair}’s rate, in the middle of {} cases; from {} to {} ×",
                ratios.len(),
                ratio_figure(least),
                ratio_figure(most)
            )
        };
        format!(
            r#"<div class="card"><h2>Beside {}</h2><p class="figure">{figure}</p><p>{}</p>{}<p>{}</p></div>"#,
            escaped(&pair.to_string()),
            escaped(&bound(&range)),
            bar(tally),
            escaped(&verdicts(tally))
        )
    }))
}

/// All sections of the comparison.
pub(super) fn sections(results: &LabResults, comparison: &Comparison) -> String {
    filled(
        AGAINST,
        &[
            ("ours", escaped(&comparison.ours.to_string())),
            ("noise", noise(comparison)),
            ("stacks", stacks(results)),
            ("losses", losses_block(comparison)),
            ("peers", peer_buttons(comparison)),
            ("heat", concat(comparison.peers.iter().map(|pair| peer(results, comparison, pair)))),
            ("mixed", mixed(comparison)),
            ("against_data", data::json(comparison)),
        ],
    )
}

/// The verdicts as a bar of three parts.
fn bar(tally: Tally) -> String {
    let parts = [("faster", tally.faster), ("same", tally.no_difference), ("slower", tally.slower)];
    let parts = parts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| format!(r#"<i class="{class}" style="flex:{count}"></i>"#));
    format!(r#"<div class="bar-of-verdicts" aria-hidden="true">{}</div>"#, concat(parts))
}

fn noise(comparison: &Comparison) -> String {
    let floors = &comparison.noise.floors;
    if floors.is_empty() {
        return r#"<p class="about">Ours was not measured against itself, so there is no noise floor: only the intervals tell what is a difference.</p>"#.to_owned();
    }
    let cells = floors.iter().flat_map(|floor| floor.cells.iter().map(move |cell| (floor, cell)));
    let largest = floors.iter().map(|floor| floor.rate).fold(0.0, f64::max);
    let lead = format!(
        "Before anything else thalweg was measured against itself, in {} cells, in the same turns as the others. What \
         came out differs by up to {}: differences smaller than the floor of their kind of call are called none, \
         whatever their interval says.{}{}",
        cells.count(),
        percent(largest.exp() - 1.0),
        if largest.exp() - 1.0 > FLOOR_HIGH {
            " That is a lot: the machine was not quiet, and what is called no difference here may be one. Repeat the \
             study when nothing else runs."
        } else {
            ""
        },
        if comparison.lines().iter().all(|&(kind, _)| comparison.noise.is_measured(kind)) {
            ""
        } else {
            " Kinds of call without a row here are held to the largest floor."
        }
    );
    let rows = concat(floors.iter().map(floor_row));
    format!(
        r#"<p class="about">{}</p><div class="scroll" tabindex="0"><table class="floors"><thead><tr><th scope="col">Kind of call</th><th scope="col">Floor of rates</th><th scope="col">Floor of medians</th><th scope="col" class="words">Ours ÷ ours, with interval</th></tr></thead><tbody>{rows}</tbody></table></div>"#,
        escaped(&bound(&lead))
    )
}

fn floor_row(floor: &Floor) -> String {
    let of_cell = |cell: &crate::analyse::compare::AaCell| {
        let rate = cell.rate.map_or("no pair of windows".to_owned(), ratio_text);
        let excluded = match cell.excluded {
            0 => String::new(),
            count => format!(", {count} windows left out"),
        };
        format!("{} {}: {rate}{excluded}", cell.size, cell.transport)
    };
    let cells: Vec<String> = floor.cells.iter().map(of_cell).collect();
    let figure =
        |log: f64| if log > 0.0 { format!("± {}", percent(log.exp() - 1.0)) } else { "–".to_owned() };
    format!(
        r#"<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td class="words">{}</td></tr>"#,
        escaped(&floor.kind.label()),
        figure(floor.rate),
        figure(floor.median),
        escaped(&bound(&cells.join(" · ")))
    )
}

fn stacks(results: &LabResults) -> String {
    let measured = results.stacks.iter().map(|info| {
        format!("<dt>{}</dt><dd>{}</dd>", escaped(&info.stack.to_string()), escaped(&info.version))
    });
    let left_out = results.left_out.iter().map(|left_out| {
        format!(
            r#"<dt class="failed">{}</dt><dd class="failed">left out: {}</dd>"#,
            escaped(&left_out.stack.to_string()),
            escaped(&left_out.reason)
        )
    });
    format!(r#"<dl class="stacks">{}</dl>"#, concat(measured.chain(left_out)))
}

/// What others are better at, before all the rest.
fn losses_block(comparison: &Comparison) -> String {
    let losses = losses(comparison);
    if losses.is_empty() {
        return r#"<p class="about">No peer is faster, beyond the noise of this study, in any case that was measured.</p>"#.to_owned();
    }
    let item = |loss: &crate::analyse::compare::Loss| {
        let (pair, size, transport) = (&loss.pair, loss.size, loss.transport);
        let label = loss.kind.label();
        let amount = if loss.is_rate {
            format!("ours reaches {} its rate", ratio_text(loss.ratio))
        } else {
            format!("ours takes {} its median time", ratio_text(loss.ratio))
        };
        let text = format!("{label}, {size} over {transport}: {amount}");
        format!("<li><b>{}</b> {}</li>", escaped(&pair.to_string()), escaped(&bound(&text)))
    };
    let (open, folded) = losses.split_at(losses.len().min(LOSSES_OPEN));
    let folded = match folded.len() {
        0 => String::new(),
        more => format!(
            "<details><summary>{more} more</summary><ul>{}</ul></details>",
            concat(folded.iter().map(item))
        ),
    };
    format!(
        r#"<div class="losses"><h3><span class="mark-of slower">▼</span> Where others are faster</h3><ul>{}</ul>{folded}</div>"#,
        concat(open.iter().map(item))
    )
}

fn peer_buttons(comparison: &Comparison) -> String {
    concat(comparison.peers.iter().enumerate().map(|(index, pair)| {
        let name = escaped(&pair.to_string());
        format!(r#"<button type="button" data-value="{name}" aria-pressed="{}">{name}</button>"#, index == 0)
    }))
}

/// The table of one peer, and what it says in sentences.
fn peer(results: &LabResults, comparison: &Comparison, pair: &Pair) -> String {
    let own = Some(&pair.server).filter(|_| pair.client == pair.server);
    let version = results.stacks.iter().find(|info| Some(&info.stack) == own);
    let version = version.map_or(String::new(), |info| format!(" <small>{}</small>", escaped(&info.version)));
    let name = escaped(&pair.to_string());
    let ours = escaped(&comparison.ours.to_string());
    let sizes = comparison.sizes();
    let heads = concat(sizes.iter().map(|size| format!(r#"<th scope="col">{size}</th>"#)));
    let many = if sizes.len() > SIZES_WIDE { " many" } else { "" };
    let aggregates = comparison.aggregates();
    let rows = comparison.lines().into_iter().enumerate().map(|(index, line)| {
        let aggregate = aggregates.iter().find(|it| it.pair == *pair && (it.kind, it.transport) == line);
        rows(comparison, pair, (index, line), &sizes, aggregate)
    });
    let sentences = contrasts(comparison)
        .into_iter()
        .filter(|contrast| contrast.pair == *pair)
        .map(|contrast| format!("<li>{}</li>", escaped(&bound(&contrast.text))));
    format!(
        r#"<div class="peer" data-peer="{name}"><h3>{ours} ÷ {name}{version}</h3><div class="scroll"><table class="heat{many}"><caption>Rates of {ours} divided by those of {name}, over message sizes, with the interval of 95 %</caption><thead><tr><th scope="col">Calls</th>{heads}<th scope="col">All sizes</th></tr></thead><tbody>{}</tbody></table></div><ul class="contrasts">{}</ul></div>"#,
        concat(rows),
        concat(sentences)
    )
}

/// The row of a line's rates, and for lone calls that of their median latencies.
fn rows(
    comparison: &Comparison,
    pair: &Pair,
    (index, (kind, transport)): (usize, (Kind, Transport)),
    sizes: &[ByteSize],
    aggregate: Option<&Aggregate>,
) -> String {
    let found = |size: ByteSize| {
        let cell = comparison.line(kind, transport).find(|cell| cell.size == size)?;
        Some((cell, cell.against(pair)?))
    };
    let row = |label: &str, is_rate: bool, all: &str| {
        let cells = sizes.iter().enumerate().map(|(at, &size)| match found(size) {
            Some((cell, against)) => heat_cell(cell, against, is_rate, (index, at)),
            None => "<td></td>".to_owned(),
        });
        format!(
            r#"<tr><th scope="row">{} <small>{label}</small></th>{}<td class="all">{all}</td></tr>"#,
            escaped(&kind.label()),
            concat(cells)
        )
    };
    let all = aggregate.map_or_else(String::new, |it| {
        let ratio = Ratio { ratio: it.mean, interval: it.interval, pairs: 0 };
        figure(ratio, interval_figure(ratio).as_deref().unwrap_or("mixed"))
    });
    let rates = row(&transport.to_string(), true, &all);
    if kind != Kind::LONE_CALL {
        return rates;
    }
    rates + &row(&format!("{transport}, median time: less is better"), false, "")
}

fn figure(ratio: Ratio, below: &str) -> String {
    format!("<b>{}</b><small>{}</small>", ratio_figure(ratio.ratio), escaped(below))
}

/// A cell is coloured by its verdict, the deeper the farther from 1, and says the verdict by a sign and a word too.
fn heat_cell(cell: &ComparedCell, against: &Against, is_rate: bool, (line, at): (usize, usize)) -> String {
    let compared = if is_rate { Some(against.rate) } else { against.median };
    let Some(Compared { ratio, verdict }) = compared else { return "<td></td>".to_owned() };
    let (class, sign, word) = match verdict {
        Verdict::Faster => ("faster", "▲", "faster"),
        Verdict::NoDifference => ("same", "=", "no difference"),
        Verdict::Slower => ("slower", "▼", "slower"),
        Verdict::Undecided => ("open", "?", "too few windows"),
        Verdict::NotMeasured => ("open", "", "not measured"),
    };
    let left_out = match cell.ours.excluded() + against.theirs.excluded() {
        0 => "",
        _ => r#"<em title="some windows failed">!</em>"#,
    };
    let figures = match ratio {
        Some(ratio) => figure(ratio, interval_figure(ratio).as_deref().unwrap_or(word)),
        None => format!("<b>–</b><small>{word}</small>"),
    };
    let depth = ratio.map_or(0.0, depth);
    format!(
        r#"<td class="{class}" style="--d:{depth:.2}" data-at="{line},{at}" tabindex="-1"><i aria-hidden="true">{sign}</i><span class="unseen">{word}, </span>{figures}{left_out}</td>"#
    )
}

/// How deep a cell's colour is, 0..1: as far as the end of the interval that is nearest to 1 lies from it, so that a
/// large ratio that is not sure is pale.
fn depth(ratio: Ratio) -> f64 {
    let ends = ratio.interval.map_or([ratio.ratio; 2], |interval| [interval.low, interval.high]);
    let nearest = ends.map(|end| end.ln().abs()).into_iter().fold(f64::INFINITY, f64::min);
    (nearest / DEEPEST.ln()).clamp(0.12, 1.0)
}

/// The section of clients and servers of different stacks; empty where there are none.
fn mixed(comparison: &Comparison) -> String {
    if comparison.mixed.is_empty() {
        return String::new();
    }
    r#"<section id="matrix"><h2>Clients at other servers</h2><p class="about">Rates, clients in rows and servers in columns, with the ratio of thalweg’s own pair to each: above 1 that pair is slower than ours at both ends. A column shows what a client is worth at the same server, a row what a server is worth to the same client.</p><div class="controls"><label>Cell <select data-matrix></select></label></div><div class="scroll" tabindex="0"><table class="heat matrix"></table></div></section>"#.to_owned()
}
