//! Every window at its time: its rate beside that of its cell, and what the machine did meanwhile.

use serde::Serialize;
use thalweg_measure::figures::short;
use thalweg_measure::statistics::median;

use super::anchor::kind_id;
use super::windows::{seconds_since, taken_away, waited_share};
use crate::load::gathered::{Windows, gathered};
use crate::load::{Kind, LabResults, PointResult};
use crate::record::LoadResult;

/// Spikes beyond this many are not marked.
const SPIKES_MARKED: usize = 24;
/// A wait that is less than this many times its window's typical one is not marked.
const SPIKE_FACTOR: f64 = 10.0;

/// Columns as long as there are windows, in the order of time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Timeline {
    cells: Vec<TimeCell>,
    /// Since the study began, s.
    at: Vec<f64>,
    /// Which of `cells`.
    cell: Vec<usize>,
    round: Vec<u32>,
    /// ÷ the median of the cell's windows; none of a window that is not valid.
    rate: Vec<Option<f64>>,
    /// Shares of the window's time in which threads were ready and did not run.
    client_waited: Vec<Option<f64>>,
    server_waited: Vec<Option<f64>>,
    /// Times per second that a thread's processor was taken from it, client and server together.
    taken_away: Vec<Option<f64>>,
    /// 0: valid, 1: valid, with its client as the limit, 2: not valid.
    state: Vec<u8>,
    spikes: Vec<TimeSpike>,
}

#[derive(Debug, Serialize)]
struct TimeCell {
    kind: String,
    transport: String,
    size_bytes: u64,
    size: String,
    /// Ours against ours.
    against_itself: bool,
}

#[derive(Debug, Serialize)]
struct TimeSpike {
    at: f64,
    took_ns: u64,
    /// Which of the windows.
    window: usize,
}

struct Row<'a> {
    at: f64,
    cell: usize,
    rate: Option<f64>,
    window: &'a PointResult,
}

/// The windows of our own pair and of the bare sockets, and those of the noise floor.
pub(super) fn timeline(results: &LabResults) -> Timeline {
    let ours = results.reference();
    let own = gathered(&results.points);
    let own = own.into_iter().filter(|windows| windows.pair.is_none_or(|pair| *pair == ours));
    let against_itself = gathered(results.aa.iter().map(|aa| &aa.window));
    let cells = against_itself.into_iter().map(|cell| (cell, true)).chain(own.map(|cell| (cell, false)));

    let mut timeline = Timeline::default();
    let mut rows = Vec::new();
    for (windows, against_itself) in cells {
        rows.extend(rows_of(&windows, timeline.cells.len(), results));
        let point = windows.point;
        timeline.cells.push(TimeCell {
            kind: kind_id(Kind::of(point)),
            transport: point.transport.to_string(),
            size_bytes: point.size_bytes.0,
            size: point.size_bytes.to_string(),
            against_itself,
        });
    }
    rows.sort_by(|a, b| a.at.total_cmp(&b.at));
    for row in &rows {
        timeline.push(row);
    }
    timeline.spikes = spikes(&rows);
    timeline
}

/// A window that failed has no time of its own: it stands where the one before it in its cell does, or the one behind.
fn rows_of<'a>(windows: &Windows<'a>, cell: usize, results: &LabResults) -> Vec<Row<'a>> {
    let Ok(began) = humantime::parse_rfc3339(&results.started) else { return Vec::new() };
    let typical = median(windows.valid().map(|(_, result)| result.rate_per_s));
    let time_of = |window: &PointResult| window.measured().and_then(|it| seconds_since(it, began));
    let mut at = windows.all.iter().find_map(|&window| time_of(window)).unwrap_or(0.0);
    let row = |&window: &&'a PointResult| {
        at = time_of(window).unwrap_or(at);
        let is_good = window.validity().is_valid();
        let rate = window.measured().filter(|_| is_good).map(|it| it.rate_per_s);
        Row { at, cell, rate: rate.zip(typical).map(|(rate, typical)| rate / typical), window }
    };
    windows.all.iter().map(row).collect()
}

impl Timeline {
    fn push(&mut self, row: &Row<'_>) {
        let usage = row.window.usage.as_ref();
        self.at.push((row.at * 1000.0).round() / 1000.0);
        self.cell.push(row.cell);
        self.round.push(row.window.round);
        self.rate.push(row.rate.map(short));
        self.client_waited.push(usage.map(|usage| short(waited_share(usage, |it| &it.client))));
        self.server_waited.push(usage.map(|usage| short(waited_share(usage, |it| &it.server))));
        let per_second = usage.map(|usage| taken_away(usage) as f64 * 1e9 / usage.window_ns.max(1) as f64);
        self.taken_away.push(per_second.map(short));
        self.state.push(match row.window.measured() {
            Some(measured) if row.rate.is_some() => u8::from(measured.is_client_limit()),
            _ => 2,
        });
    }
}

/// The longest wait of each window, if it is long beside what is typical there: of all windows those that are longest
/// beside it.
fn spikes(rows: &[Row<'_>]) -> Vec<TimeSpike> {
    let longest = |(window, row): (usize, &Row<'_>)| {
        let measured = row.window.measured()?;
        let spike = measured.spikes.first()?;
        let factor = spike.took_ns as f64 / typical_ns(measured)?.max(1.0);
        let at = row.at + spike.at_ns as f64 / 1e9;
        Some((factor, TimeSpike { at: (at * 1000.0).round() / 1000.0, took_ns: spike.took_ns, window }))
    };
    let mut spikes: Vec<(f64, TimeSpike)> = rows.iter().enumerate().filter_map(longest).collect();
    spikes.retain(|(factor, _)| *factor >= SPIKE_FACTOR);
    spikes.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    spikes.truncate(SPIKES_MARKED);
    spikes.into_iter().map(|(_, spike)| spike).collect()
}

/// What a wait or a gap of this window is compared with.
fn typical_ns(measured: &LoadResult) -> Option<f64> {
    let median = measured.latency_ns.map(|latency| latency.p50 as f64);
    median.or(measured.pace_ns.map(|pace| pace.mean * pace.messages_per_reading as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::results::Outcome;
    use crate::tests::sample;

    #[test]
    fn windows_stand_in_the_order_of_time_with_what_became_of_them() {
        let mut results = sample::sizes();
        let template = results.points.swap_remove(0);
        let window = |round, second, rate| {
            let mut window = template.clone();
            window.round = round;
            let Outcome::Measured(measured) = &mut window.outcome else { panic!() };
            measured.started = format!("2026-11-21T08:00:{second:02}Z");
            measured.rate_per_s = rate;
            window
        };
        let mut limited = window(1, 7, 200.0);
        let Outcome::Measured(measured) = &mut limited.outcome else { panic!() };
        measured.notes.push(crate::record::Note {
            text: "the client's processors were busy for 97 % of the time".to_owned(),
            invalidates: true,
        });
        let failed = PointResult { outcome: Outcome::Failed("lost".to_owned()), ..window(2, 9, 0.0) };
        results.points = vec![window(3, 11, 100.0), window(0, 5, 50.0), limited, failed];
        let timeline = timeline(&results);
        assert_eq!(timeline.at, [5.0, 7.0, 7.0, 11.0]);
        assert_eq!(timeline.rate, [Some(0.5), Some(2.0), None, Some(1.0)]);
        assert_eq!(timeline.state, [0, 1, 2, 0]);
        assert_eq!(timeline.round, [0, 1, 2, 3]);
        // The sample's longest wait is 15 times its median.
        assert_eq!(timeline.spikes.len(), 3);
    }
}
