//! Timeline of all windows: each one's rate relative to its cell, and the machine's activity.

use thalweg_measure::figures::{short, time};
use thalweg_measure::page::chart::{Chart, LineStyle, Mark, Series, Unit, XAxis, YAxis, rounded};
use thalweg_measure::page::section::{Block, When};
use thalweg_measure::statistics::median;

use super::anchor::anchor;
use super::plots::unhidden;
use super::windows::{involuntary_switches, seconds_since, waited_share};
use crate::load::gathered::{MergedCell, gather_cells};
use crate::load::{Kind, LabResults, PointResult};
use crate::record::{LoadResult, Spike};
use crate::studies::sizes::analysis::SizesAnalysis;

/// Highest number of marked spikes.
const SPIKES_MARKED: usize = 24;
/// Multiple of its window's typical wait from which a spike is marked.
const SPIKE_FACTOR: f64 = 10.0;
/// Distance between windows at the same time, s.
const APART: f64 = 0.001;
/// The chart whose axis the others share.
const RATES: &str = "time-rate";

/// A window on the time line.
struct WindowAtTime<'a> {
    /// Seconds since the study began. Times of rows are strictly ascending.
    at: f64,
    /// Rate ÷ the median of the cell's windows; `None` if the window is not valid.
    rate: Option<f64>,
    window: &'a PointResult,
    /// Whether it belongs to the noise floor.
    against_itself: bool,
}

/// Returns charts of the windows of our own pair, of bare sockets and of the noise floor.
pub(super) fn blocks(study: &SizesAnalysis<'_>) -> Vec<Block> {
    let rows = rows(study);
    if rows.is_empty() {
        return vec![Block::about("No window was measured.")];
    }
    // Number of adjacent windows in the running median.
    let neighbours = (2 * (rows.len() / 8) + 1).min(25);
    vec![
        Block::Wide(vec![rates(&rows, neighbours), waited(&rows), preempted(&rows)]),
        Block::Hint(format!(
            "The line is the running median of {neighbours} adjacent windows, whatever they measured: where it leaves \
             1, the machine became slower or faster. A ring is a window whose client was the limit, a cross at the \
             lower edge a window that is not valid, and a triangle at the upper edge a long wait. A click leads to \
             the windows of the cell."
        )),
    ]
}

fn rows<'a>(study: &SizesAnalysis<'a>) -> Vec<WindowAtTime<'a>> {
    let against_itself = gather_cells(study.results.aa.iter().map(|aa| &aa.window));
    let own = study.own.iter().flat_map(|cell| rows_of(cell, false, study.results));
    let mut rows: Vec<WindowAtTime<'a>> =
        against_itself.iter().flat_map(|cell| rows_of(cell, true, study.results)).chain(own).collect();
    rows.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut last = f64::NEG_INFINITY;
    for row in &mut rows {
        row.at = ((row.at.max(last + APART)) * 1000.0).round() / 1000.0;
        last = row.at;
    }
    rows
}

/// Returns the rows of a cell. A failed window has no time, so it gets that of the window before it, or of the next.
fn rows_of<'a>(
    windows: &MergedCell<'a>,
    against_itself: bool,
    results: &LabResults,
) -> Vec<WindowAtTime<'a>> {
    let Ok(began) = humantime::parse_rfc3339(&results.started) else { return Vec::new() };
    let typical = median(windows.valid().map(|(_, result)| result.rate_per_s));
    let time_of = |window: &PointResult| window.measured().and_then(|it| seconds_since(it, began));
    let mut at = windows.all.iter().find_map(|&window| time_of(window)).unwrap_or(0.0);
    let row = |&window: &&'a PointResult| {
        at = time_of(window).unwrap_or(at);
        let is_good = window.validity().is_valid();
        let rate = window.measured().filter(|_| is_good).map(|it| it.rate_per_s);
        WindowAtTime {
            at,
            against_itself,
            rate: rate.zip(typical).map(|(rate, typical)| rate / typical),
            window,
        }
    };
    windows.all.iter().map(row).collect()
}

/// Returns the time axis with the windows' titles for the pointer.
fn time_axis(rows: &[WindowAtTime<'_>]) -> XAxis {
    let (mut titles, mut keys) = (Vec::new(), Vec::new());
    let mut title_of = |row: &WindowAtTime<'_>| {
        let point = &row.window.point;
        let kind = Kind::of(point);
        let itself = if row.against_itself { ", ours against ours" } else { "" };
        let title = format!("{}, {}, {}{itself}", kind.label(), point.transport, point.size_bytes);
        titles.iter().position(|known| *known == title).unwrap_or_else(|| {
            titles.push(title);
            let is_linked = !row.against_itself;
            keys.push(if is_linked {
                anchor(kind, point.transport, point.size_bytes)
            } else {
                String::new()
            });
            titles.len() - 1
        })
    };
    let title_of = rows.iter().map(&mut title_of).collect();
    XAxis {
        at: rows.iter().map(|row| row.at).collect(),
        titles,
        title_of,
        keys,
        clock: true,
        sync: Some("time"),
        ..XAxis::default()
    }
}

/// Returns a series of the given rows.
fn series<'r, 'a: 'r>(
    style: usize,
    mark: Mark,
    rows: impl Iterator<Item = &'r WindowAtTime<'a>>,
    y: impl Fn(&WindowAtTime<'_>) -> Option<f64>,
) -> Series {
    let (x, y): (Vec<f64>, Vec<Option<f64>>) = rows.map(|row| (row.at, y(row))).unzip();
    Series { x, y: rounded(y), mark, shown: vec![(style, When::new())], ..Series::default() }
}

fn stems(style: usize, rows: &[WindowAtTime<'_>], y: impl Fn(&WindowAtTime<'_>) -> Option<f64>) -> Series {
    Series { mark: Mark::Stems, ..Series::new(style, When::new(), rows.iter().map(y)) }
}

fn line_style(name: &str, colour: &str) -> LineStyle {
    LineStyle { name: name.to_owned(), colour: colour.to_owned(), width: 2.0, ..LineStyle::default() }
}

fn rates(rows: &[WindowAtTime<'_>], neighbours: usize) -> Chart {
    let mut styles: Vec<LineStyle> = Vec::new();
    let mut all: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.rate.is_some()) {
        let kind = Kind::of(&row.window.point);
        let dots = LineStyle { short: String::new(), ..unhidden(kind) };
        let index = styles.iter().position(|known| known.name == dots.name).unwrap_or_else(|| {
            styles.push(dots);
            all.push(Series {
                mark: Mark::Dots,
                shown: vec![(styles.len() - 1, When::new())],
                ..Series::default()
            });
            styles.len() - 1
        });
        let series = &mut all[index];
        series.x.push(row.at);
        series.y.push(row.rate.map(short));
        series.notes.push(format!(", round {}", row.window.round));
        series.link = Some(String::new());
    }
    let named = [
        (format!("median of {neighbours} windows"), "text"),
        ("the client was the limit".to_owned(), "warn"),
        ("not valid: see its remark".to_owned(), "warn"),
        ("longest wait".to_owned(), "muted"),
    ];
    let first = styles.len();
    styles.extend(named.iter().map(|(name, colour)| line_style(name, colour)));
    let smooth = smooth(rows, neighbours);
    let limited = |row: &&WindowAtTime<'_>| row.window.measured().is_some_and(LoadResult::is_client_limit);
    let spikes = spikes(rows);
    all.extend([
        Series { mark: Mark::Line, ..Series::new(first, When::new(), smooth) },
        series(first + 1, Mark::Rings, rows.iter().filter(limited), |row| row.rate),
        series(first + 2, Mark::Crosses, rows.iter().filter(|row| row.rate.is_none()), |_| Some(1.0)),
        Series {
            notes: spikes.iter().map(|(_, spike)| format!(" {}", time(spike.took_ns as f64))).collect(),
            ..series(first + 3, Mark::Triangles, spikes.iter().map(|(row, _)| *row), |_| Some(1.0))
        },
    ]);
    Chart {
        id: RATES.to_owned(),
        title: "Windows over time".to_owned(),
        about: "its rate ÷ the median rate of its cell: 1 is typical of the same call, size and transport"
            .to_owned(),
        x: time_axis(rows),
        y: YAxis { unit: Unit::Ratio, log: true, includes: vec![0.8, 1.25], ..YAxis::default() },
        styles,
        series: all.into_iter().filter(|series| !series.is_empty()).collect(),
        ..Chart::default()
    }
}

/// Returns the running median of rates, if at least three are known.
fn smooth(rows: &[WindowAtTime<'_>], neighbours: usize) -> Vec<Option<f64>> {
    let near = |index: usize| {
        let window = index.saturating_sub(neighbours / 2)..rows.len().min(index + neighbours / 2 + 1);
        let rates: Vec<f64> = rows[window].iter().filter_map(|row| row.rate).collect();
        if rates.len() > 2 { median(rates) } else { None }
    };
    (0..rows.len()).map(near).collect()
}

fn waited(rows: &[WindowAtTime<'_>]) -> Chart {
    let client = |row: &WindowAtTime<'_>| Some(waited_share(row.window.usage.as_ref()?, |it| &it.client));
    let server = |row: &WindowAtTime<'_>| Some(waited_share(row.window.usage.as_ref()?, |it| &it.server));
    Chart {
        id: "time-waited".to_owned(),
        title: "Waited for a processor".to_owned(),
        about: "of the window’s time".to_owned(),
        class: "low",
        x: XAxis::same_as(RATES),
        y: YAxis { unit: Unit::Percent, includes: vec![0.0, 0.01], ..YAxis::default() },
        styles: vec![line_style("client", "ours"), line_style("server", "peer-1")],
        series: vec![stems(0, rows, client), stems(1, rows, server)],
        ..Chart::default()
    }
}

fn preempted(rows: &[WindowAtTime<'_>]) -> Chart {
    let per_second = |row: &WindowAtTime<'_>| {
        let usage = row.window.usage.as_ref()?;
        Some(involuntary_switches(usage) as f64 * 1e9 / usage.window_ns.max(1) as f64)
    };
    Chart {
        id: "time-taken".to_owned(),
        title: "CPU time taken by others".to_owned(),
        about: "per second, client and server together".to_owned(),
        class: "low",
        x: XAxis::same_as(RATES),
        y: YAxis { unit: Unit::Rate, includes: vec![0.0, 1.0], ..YAxis::default() },
        styles: vec![line_style("taken away", "muted")],
        series: vec![stems(0, rows, per_second)],
        ..Chart::default()
    }
}

/// Returns the longest wait of each window, if long compared with its typical wait. Only the most extreme ones are
/// kept, in order of time.
fn spikes<'r, 'a>(rows: &'r [WindowAtTime<'a>]) -> Vec<(&'r WindowAtTime<'a>, Spike)> {
    let longest = |row: &'r WindowAtTime<'a>| {
        let measured = row.window.measured()?;
        let spike = *measured.spikes.first()?;
        Some((spike.took_ns as f64 / typical_ns(measured)?.max(1.0), row, spike))
    };
    let mut spikes: Vec<_> = rows.iter().filter_map(longest).collect();
    spikes.retain(|(factor, ..)| *factor >= SPIKE_FACTOR);
    spikes.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    spikes.truncate(SPIKES_MARKED);
    spikes.sort_by(|(_, a, _), (_, b, _)| a.at.total_cmp(&b.at));
    spikes.into_iter().map(|(_, row, spike)| (row, spike)).collect()
}

/// Returns the reference for a window's waits or gaps.
fn typical_ns(measured: &LoadResult) -> Option<f64> {
    let median = measured.latency_ns.map(|latency| latency.p50 as f64);
    median.or(measured.pace_ns.map(|pace| pace.mean * pace.messages_per_reading as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Outcome;
    use crate::tests::sample;

    #[test]
    fn timeline_orders_windows_by_time_with_outcomes() {
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
        let rows = rows(&SizesAnalysis::of(&results));
        let column = |of: fn(&WindowAtTime<'_>) -> Option<f64>| rows.iter().map(of).collect::<Vec<_>>();
        assert_eq!(column(|row| Some(row.at)), [5.0, 7.0, 7.001, 11.0].map(Some));
        assert_eq!(column(|row| row.rate), [Some(0.5), Some(2.0), None, Some(1.0)]);
        assert_eq!(column(|row| Some(row.window.round.into())), [0.0, 1.0, 2.0, 3.0].map(Some));
        let chart = rates(&rows, 1);
        let of = |mark| chart.series.iter().filter(move |it| it.mark == mark).flat_map(|it| it.x.clone());
        assert_eq!(of(Mark::Rings).collect::<Vec<_>>(), [7.0]);
        assert_eq!(of(Mark::Crosses).collect::<Vec<_>>(), [7.001]);
        // The sample's longest wait is 15 times its median.
        assert_eq!(of(Mark::Triangles).count(), 3);
    }
}
