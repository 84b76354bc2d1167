//! Doubts about the figures of a JSON study.

use super::cells::Cells;
use super::noise::CaseFloor;
use super::results::JsonResults;
use crate::findings::Doubt;
use crate::load::remarks::{Remarks, of_study};

/// Noise floor above which it is mentioned.
const FLOOR_MAX: f64 = 1.1;

/// Returns the doubts. Empty for a good study.
pub(super) fn doubts(results: &JsonResults, cells: &Cells) -> Vec<Doubt> {
    let has_separate_cpus = results.settings.client_cpus.is_some();
    let windows = (results.windows.len(), results.planned);
    let mut doubts = of_study(windows, &results.machine, &results.versions, has_separate_cpus);
    doubts.extend(cells.noise.floors.iter().filter_map(noisy));
    for left_out in &results.left_out {
        doubts.push(Doubt::left_out(&left_out.what, &left_out.reason));
    }
    let mut remarks = Remarks::new(results.windows.len());
    for result in &results.windows {
        remarks.window(&result.window, result.measured(), &result.validity());
    }
    doubts.extend(remarks.into_doubts());
    doubts
}

fn noisy(noise: &CaseFloor) -> Option<Doubt> {
    let floor = noise.log().exp();
    let what = || thalweg_measure::wording::capitalised(&format!("{}, {}", noise.of, noise.case));
    (floor > FLOOR_MAX).then(|| Doubt::noisy(Some(&what()), floor))
}
