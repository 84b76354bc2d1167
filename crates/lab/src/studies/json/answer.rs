//! Headline of a JSON study.

use thalweg_measure::figures::{ratio_text, time};

use super::case::{Case, title};
use super::cells::{Cells, EndpointCell};
use super::endpoint::Endpoint;
use super::results::JsonResults;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Verdict;

/// An answer, and whether it is conclusive.
pub(super) struct Answer {
    pub(super) text: String,
    /// Whether the comparison is conclusive for some message.
    pub(super) is_conclusive: bool,
}

/// Compares our JSON API with our gRPC server by time, for the published message and for a small one.
pub(super) fn answer(results: &JsonResults, cells: &Cells) -> Option<Answer> {
    let featured = results.settings.featured();
    let factors: Vec<Answer> = featured.into_iter().filter_map(|shape| factor(cells, shape)).collect();
    let is_conclusive = factors.iter().any(|factor| factor.is_conclusive);
    let texts: Vec<String> = factors.into_iter().map(|factor| factor.text).collect();
    let text = thalweg_measure::wording::capitalised(&texts.join("; "));
    (!texts.is_empty()).then(|| Answer { text: format!("{text}."), is_conclusive })
}

fn factor(cells: &Cells, shape: Shape) -> Option<Answer> {
    let case = Case::plain(shape);
    let pair = cells.pair_at(case, &Endpoint::ours(Protocol::JsonHttp1), &Endpoint::reference())?;
    let compared = pair.latency();
    let times = format!("{} against {}", time(pair.one.p50()?), time(pair.of_other(EndpointCell::p50)?));
    let what = title(shape);
    let api = "a JSON API over HTTP/1.1";
    let is_conclusive = !matches!(compared.verdict, Verdict::CannotTell | Verdict::NotMeasured);
    let text = match (compared.verdict, compared.ratio?) {
        (Verdict::NoDifference, _) => format!("with {what}, {api} takes as long as gRPC ({times})"),
        (Verdict::CannotTell | Verdict::NotMeasured, ratio) => {
            let ratio = ratio_text(ratio);
            format!("with {what}, no difference between {api} and gRPC is shown ({ratio}: {times})")
        }
        (Verdict::Faster | Verdict::Slower, ratio) => {
            format!("with {what}, {api} takes {} as long as gRPC ({times})", ratio_text(ratio))
        }
    };
    Some(Answer { text, is_conclusive })
}
