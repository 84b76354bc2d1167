//! Matrix of one cell, with clients as rows and servers as columns.

use maud::{Markup, html};
use thalweg_measure::figures::{count, ratio_text};
use thalweg_measure::page::parts::scrolled;
use thalweg_measure::page::section::{Block, Choice, when};

use super::heat;
use super::names::line_name;
use crate::load::gathered::distinct;
use crate::stack::Pair;
use crate::studies::sizes::compare::{ComparedCell, StacksCompared};

pub(super) fn blocks(comparison: &StacksCompared<'_>) -> Vec<Block> {
    let is_mixed =
        |cell: &&ComparedCell<'_>| cell.against.iter().any(|it| comparison.mixed.contains(&it.pair));
    let cells: Vec<&ComparedCell<'_>> = comparison.cells.iter().filter(is_mixed).collect();
    let name = |cell: &ComparedCell<'_>| format!("{}, {}", line_name((cell.kind, cell.transport)), cell.size);
    let named = cells.iter().enumerate().map(|(index, cell)| (index.to_string(), name(cell)));
    let mut blocks = vec![
        Block::about(
            "Rates with clients in rows and servers in columns, and the ratio of thalweg’s own pair to each: above 1, \
             that pair is slower than ours at both ends. A column compares clients at the same server, a row compares \
             servers with the same client.",
        ),
        Block::Choices(vec![Choice::list("matrix", "Cell", named)]),
    ];
    blocks.extend(cells.iter().enumerate().map(|(index, cell)| {
        let table = scrolled(&table(comparison, cell));
        Block::When(when("matrix", [index.to_string()]), vec![Block::Raw(table)])
    }));
    blocks
}

fn table(comparison: &StacksCompared<'_>, cell: &ComparedCell<'_>) -> Markup {
    let pairs = || std::iter::once(&comparison.ours).chain(&comparison.peers).chain(&comparison.mixed);
    let (servers, clients) =
        (distinct(pairs().map(|pair| &pair.server)), distinct(pairs().map(|pair| &pair.client)));
    html! {
        table.heat.matrix {
            caption { "Rates of clients at servers" }
            thead {
                tr {
                    th scope="col" { "Client ↓ at server →" }
                    @for server in &servers { th scope="col" { (server) } }
                }
            }
            tbody {
                @for &client in &clients {
                    tr {
                        th scope="row" { (client) }
                        @for &server in &servers {
                            (field(comparison, cell, &Pair { client: client.clone(), server: server.clone() }))
                        }
                    }
                }
            }
        }
    }
}

fn field(comparison: &StacksCompared<'_>, cell: &ComparedCell<'_>, pair: &Pair) -> Markup {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{}/s", count(rate)));
    if *pair == comparison.ours {
        return html! { td.same.own { b { (rate(cell.ours.rate())) } small { "ours" } } };
    }
    let Some(against) = cell.against(pair) else { return html! { td {} } };
    let ratio = against.rate.ratio.map_or_else(|| against.rate.verdict.name().to_owned(), ratio_text);
    let content = html! { b { (rate(against.theirs.rate())) } small { (ratio) } };
    heat::coloured(against.rate, None, &content)
}
