//! What speaks against the figures of a codec study.

use thalweg_measure::figures::percent;

use super::analyse::CodecFigures;
use super::results::CodecResults;
use crate::findings::Doubt;
use crate::load::remarks::of_machine;

/// Doubles that differ by more than this say that the machine was busy.
const FLOOR_HIGH: f64 = 1.25;
/// Iterations of a peer that differ by more than this share of their median are not of one speed.
const UNSTEADY: f64 = 0.3;

/// What to know before the figures are used.
pub(super) fn doubts(results: &CodecResults, analysis: &CodecFigures) -> Vec<Doubt> {
    let mut doubts = of_machine(&results.machine, &results.versions);
    if let Some(noise) = analysis.noise.as_ref().filter(|noise| noise.floor > FLOOR_HIGH) {
        doubts.push(Doubt::noisy(None, noise.floor));
    }
    doubts.extend(results.disturbance().map(|disturbance| Doubt(disturbance.to_string())));
    if results.measured() < results.planned {
        doubts.push(Doubt::cut_short(results.measured(), results.planned));
    }
    let of_peers = || analysis.lines.iter().filter(|line| line.of_peer);
    let unsteady = of_peers().filter(|line| line.range > UNSTEADY).count();
    if unsteady > 0 {
        doubts.push(Doubt(format!(
            "{unsteady} of {} results of other programs are unstable: iterations differ by more than {}.",
            of_peers().count(),
            percent(UNSTEADY)
        )));
    }
    if results.data.len() == 1 && results.settings.seed.is_none() {
        let text =
            "The message's type is known at run time only, so codecs with generated code are not measured.";
        doubts.push(Doubt(text.to_owned()));
    }
    doubts.extend(results.left_out.iter().map(|it| Doubt::left_out(&it.what, &it.reason)));
    doubts
}
