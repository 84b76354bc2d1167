//! Questions and answers, derived from the cells. A question without measurements is left out.

mod connections;
mod formats;
mod networks;
mod parts;
mod published;
mod servers;
mod sizes;

use super::cells::Cells;
use super::question::Question;
use super::results::JsonResults;

/// Returns all answered questions, in the order of the page.
pub(super) fn questions(results: &JsonResults, cells: &Cells) -> Vec<Question> {
    let all = [
        published::published(results, cells),
        published::cold(results, cells),
        parts::parts(results, cells),
        sizes::sizes(results, cells),
        networks::networks(results, cells),
        connections::connections(results, cells),
        connections::versions(results, cells),
        formats::messagepack(results, cells),
        formats::compression(cells),
        servers::gateway(results, cells),
        servers::servers(results, cells),
        servers::views(results, cells),
        servers::port(results, cells),
    ];
    all.into_iter().filter(|question| !question.table.rows.is_empty()).collect()
}
