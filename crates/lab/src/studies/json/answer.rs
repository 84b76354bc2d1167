//! The first thing to know of a study of gRPC against a JSON API.

use thalweg_measure::figures::{ratio_text, time};

use super::case::{Case, title};
use super::cells::Cells;
use super::results::JsonResults;
use super::way::Way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Verdict;

/// How much longer a JSON API takes than gRPC, both ours: with the published message, and with a small one.
pub(super) fn answer(results: &JsonResults, cells: &Cells) -> Option<String> {
    let featured = results.settings.featured();
    let factors: Vec<String> = featured.into_iter().filter_map(|shape| factor(cells, shape)).collect();
    match factors.as_slice() {
        [] => None,
        all => Some(format!("{}.", thalweg_measure::wording::capitalised(&all.join("; ")))),
    }
}

fn factor(cells: &Cells, shape: Shape) -> Option<String> {
    let case = Case::plain(shape);
    let grpc = cells.at(&Way::reference(), case)?;
    let json = cells.at(&Way::ours(Protocol::JsonHttp1), case)?;
    let compared = cells.latency_ratio(json, grpc);
    let times = format!("{} against {}", time(json.p50()?), time(grpc.p50()?));
    let what = title(shape);
    let api = "a JSON API over HTTP/1.1";
    Some(match (compared.verdict, compared.ratio?) {
        (Verdict::NoDifference, _) => format!("with {what}, {api} takes as long as gRPC ({times})"),
        (Verdict::CannotTell | Verdict::NotMeasured, ratio) => {
            let ratio = ratio_text(ratio);
            format!("with {what}, no difference between {api} and gRPC is shown ({ratio}: {times})")
        }
        (Verdict::Faster | Verdict::Slower, ratio) => {
            format!("with {what}, {api} takes {} as long as gRPC ({times})", ratio_text(ratio))
        }
    })
}
