//! What a study of calls measured, for those who compare it with something else.

use thalweg_measure::distribution::Latency;

use super::gathered::gathered;
use super::paired::PairedWindow;
use super::results::LabResults;

/// All windows of one pair, or of a bare socket, at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCell {
    /// What was asked of each, by name: kind of call, size, transport …
    pub conditions: Vec<(&'static str, String)>,
    /// Whose client and server, `tonic` or `thalweg → tonic`; `None` for a bare socket.
    pub pair: Option<String>,
    /// The good ones, by their round.
    pub windows: Vec<MeasuredWindow>,
    /// How many are not among them: they failed, or were disturbed.
    pub excluded: usize,
}

/// The figures of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredWindow {
    /// Windows of the same round stand next to each other in time.
    pub round: u32,
    /// Operations per second.
    pub rate_per_s: f64,
    /// None of streams one way.
    pub latency_ns: Option<Latency>,
    /// Processor time of the client for an operation, ns; 0 where it is not known.
    pub client_cpu_ns: f64,
    /// Of the server.
    pub server_cpu_ns: f64,
}

impl LabResults {
    /// What was measured, in the order of measuring; the noise floor is not among it.
    pub fn cells(&self) -> Vec<MeasuredCell> {
        let cells = gathered(&self.points).into_iter().map(|cell| {
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
        cells.collect()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_study_of_several_stacks_has_the_same_cells_of_each() {
        let study = crate::tests::sample::comparison::quick();
        let cells = study.cells();
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
