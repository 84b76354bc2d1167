//! Doubts about the figures of a study of calls.

use super::remarks::{Remarks, of_study};
use super::results::{LabResults, PointResult};
use crate::findings::Doubt;
use crate::stack::Pair;

/// Returns the doubts about the study's figures. Empty for a good study.
pub(crate) fn doubts(results: &LabResults) -> Vec<Doubt> {
    let settings = &results.settings;
    let has_separate_cpus = settings.client_cpus.is_some() || settings.target.is_some();
    let done = if results.is_complete() { results.planned } else { results.points.len() };
    let mut doubts =
        of_study((done, results.planned), &results.machine, &results.versions, has_separate_cpus);
    doubts.extend(settings.cut.clone().map(Doubt));
    let windows = results.aa.iter().map(|aa| &aa.window).chain(&results.points);
    let mut remarks = Remarks::new(windows.clone().count());
    for window in windows {
        let name = name(window);
        remarks.window(&name, window.measured(), &window.validity());
    }
    doubts.extend(remarks.into_doubts());
    doubts
}

fn name(window: &PointResult) -> String {
    match &window.pair {
        Some(pair) if *pair != Pair::ours() => format!("{pair}, {}", window.point),
        _ => window.point.to_string(),
    }
}
