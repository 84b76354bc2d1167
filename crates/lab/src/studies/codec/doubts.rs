//! Doubts about the figures of a codec study.

use thalweg_measure::figures::percent;

use super::analyse::CodecFigures;
use super::results::CodecResults;
use crate::findings::Doubt;
use crate::load::remarks::of_machine;

/// Noise floor above which the machine was probably busy.
const FLOOR_HIGH: f64 = 1.25;
/// Spread of a peer's iterations, as a share of their median, above which they count as unsteady.
const UNSTEADY: f64 = 0.3;

/// Returns the doubts about the figures.
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
