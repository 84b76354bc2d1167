//! Exports measured windows of calls for comparison with other results.

use thalweg_measure::measured::{MeasuredCell, MeasuredStudy, MeasuredWindow};

use super::gathered::gather_cells;
use super::paired::PairedWindow;
use super::results::LabResults;

impl LabResults {
    /// Returns the windows of a study of calls from the text of its results file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not contain results of a study of calls.
    pub fn parse_measured(text: &str) -> Result<MeasuredStudy, String> {
        let results: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(results.measured())
    }

    /// Returns the windows of the study.
    pub fn measured(&self) -> MeasuredStudy {
        let cells = gather_cells(&self.points).into_iter().map(|cell| {
            let point = cell.point;
            let mut conditions = vec![
                ("call", point.work.to_string()),
                ("size", point.size_bytes.to_string()),
                ("transport", point.transport.to_string()),
                ("in flight", point.in_flight.to_string()),
                ("connections", point.connections.to_string()),
            ];
            if point.tls {
                conditions.push(("TLS", "yes".to_owned()));
            }
            if let Some(active) = point.active {
                conditions.push(("active connections", active.to_string()));
            }
            if !point.round_trip.is_zero() {
                conditions.push(("added round trip", format!("{:?}", point.round_trip)));
            }
            if let Some(strategy) = cell.all.first().and_then(|window| window.strategy) {
                conditions.push(("connections by", strategy.to_string()));
            }
            let figures = cell.valid().filter_map(|(result, load)| {
                let window = PairedWindow::of(result);
                let measured = window.outcome.ok()?;
                Some(MeasuredWindow {
                    round: window.round,
                    rate_per_s: measured.rate_per_s,
                    latency_ns: load.latency_ns,
                    client_cpu_ns: measured.client_ns,
                    server_cpu_ns: measured.server_ns,
                })
            });
            let windows: Vec<MeasuredWindow> = figures.collect();
            let excluded = cell.all.len() - windows.len();
            MeasuredCell { conditions, pair: cell.pair.map(ToString::to_string), windows, excluded }
        });
        MeasuredStudy {
            machine: self.machine.clone(),
            versions: self.versions.clone(),
            cells: cells.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_stack_of_a_study_has_the_same_cells() {
        let study = crate::tests::sample::comparison::quick();
        let cells = study.measured().cells;
        let of = |pair: &str| -> Vec<_> {
            let of_pair = cells.iter().filter(|cell| cell.pair.as_deref() == Some(pair));
            of_pair.map(|cell| cell.conditions.clone()).collect()
        };
        let (ours, theirs) = (of("thalweg"), of("tonic"));
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs);
        let first = &cells.iter().find(|cell| cell.pair.is_some()).unwrap();
        assert_eq!(first.conditions[0].0, "call");
        let rounds: Vec<u32> = first.windows.iter().map(|window| window.round).collect();
        assert!(rounds.is_sorted() && rounds.len() + first.excluded >= 3, "{rounds:?}");
    }
}
