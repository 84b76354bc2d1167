//! Charts over time.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};
use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::{count, span, time};

use super::history::IntervalSample;
use super::view::{Reading, View};

/// Columns of a chart used by frame and axis.
const FRAME_COLUMNS: u16 = 9;
/// Rows of a chart used by frame and axis.
const FRAME_ROWS: u16 = 4;
/// Braille dots per column.
const DOTS: u16 = 2;
/// Minimum number of points on the time axis.
const POINTS_MIN: usize = 20;

/// Pairs of x position and value.
type Points = Vec<(f64, f64)>;

/// Selects a percentile of an interval.
type Percentile = fn(&Latency) -> u64;

const PERCENTILES: [(&str, Color, Percentile); 4] = [
    ("p50", Color::Green, |latency| latency.p50),
    ("p90", Color::Yellow, |latency| latency.p90),
    ("p99", Color::LightRed, |latency| latency.p99),
    ("max", Color::Magenta, |latency| latency.max),
];

/// Draws calls per second; in an open loop, scheduled and actual starts.
pub(super) fn rate(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let time = Recent::of(view, area);
    let scheduled = time.points(|sample| Some(sample.scheduled));
    let is_open = reading.so_far.scheduled_per_s.is_some();
    let actual = time.points(|sample| Some(if is_open { sample.starts } else { sample.rate }));
    let mut sets = Vec::new();
    let unit = if is_open { reading.so_far.unit() } else { "call" };
    let mut title = vec![Span::from(format!(" {unit}s/s "))];
    if is_open {
        title.push(Span::from("scheduled ").fg(Color::DarkGray));
        sets.push((&scheduled, Color::DarkGray));
    }
    sets.push((&actual, Color::Cyan));
    from_zero(frame, area, Line::from(title), &sets, time.axis(reading));
}

/// Draws calls in flight and usable connections.
pub(super) fn in_flight(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let time = Recent::of(view, area);
    let calls = time.points(|sample| Some(sample.in_flight as f64));
    let connections = time.points(|sample| Some(f64::from(sample.connections)));
    let title = vec![Span::from(" in flight ").fg(Color::Cyan), Span::from("connections ").fg(Color::Green)];
    let sets = [(&calls, Color::Cyan), (&connections, Color::Green)];
    from_zero(frame, area, Line::from(title), &sets, time.axis(reading));
}

/// Draws failed calls per second.
pub(super) fn failures(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let time = Recent::of(view, area);
    let failed = time.points(|sample| Some(sample.failed));
    let title = Line::from(Span::from(" failed/s ").fg(Color::Red));
    from_zero(frame, area, title, &[(&failed, Color::Red)], time.axis(reading));
}

/// Draws counts on an axis from 0 to just above the maximum.
fn from_zero(frame: &mut Frame<'_>, area: Rect, title: Line<'_>, sets: &[(&Points, Color)], x: Axis<'_>) {
    let all = sets.iter().flat_map(|(points, _)| points.iter());
    let top = round_up(all.map(|(_, value)| *value).fold(1.0, f64::max));
    let labels = vec!["0".to_owned(), count(top / 2.0), count(top)];
    let sets = sets.iter().map(|(points, color)| line(points, *color)).collect();
    draw(frame, area, title, sets, x, Axis::default().bounds([0.0, top]).labels(labels));
}

/// Draws percentiles on a logarithmic axis.
pub(super) fn latency(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let recent = Recent::of(view, area);
    let latencies = || recent.samples().filter_map(|(_, sample)| sample.latency);
    let low = latencies().map(|latency| latency.p50).min().unwrap_or(100_000).max(1);
    let high = latencies().map(|latency| latency.max).max().unwrap_or(1_000_000).max(2);
    let Decades { bottom, top, step } = Decades::of(low, high, area.height.saturating_sub(FRAME_ROWS));
    let labels = (bottom..=top).step_by(step).map(|decade| time(10_f64.powi(decade)));
    let points = PERCENTILES.map(|(_, _, percentile)| {
        recent.points(|sample| sample.latency.map(|latency| (percentile(&latency).max(1) as f64).log10()))
    });
    let mut title = vec![Span::from(" latency ")];
    title.extend(PERCENTILES.map(|(name, color, _)| Span::from(format!("{name} ")).fg(color)));
    let sets = PERCENTILES.iter().zip(&points).map(|((_, color, _), points)| line(points, *color)).collect();
    let axis = Axis::default().bounds([f64::from(bottom), f64::from(top)]).labels(labels.collect::<Vec<_>>());
    draw(frame, area, Line::from(title), sets, recent.axis(reading), axis);
}

/// A logarithmic axis of whole decades, with a label every `step` decades.
#[derive(Debug, PartialEq, Eq)]
struct Decades {
    /// Exponent of ten.
    bottom: i32,
    top: i32,
    step: usize,
}

impl Decades {
    /// Chooses at most one label per row, evenly spaced.
    fn of(low: u64, high: u64, rows: u16) -> Self {
        let bottom = (low as f64).log10().floor() as i32;
        let decades = ((high as f64).log10().ceil() as i32 - bottom).max(1) as usize;
        let step = decades.div_ceil(usize::from(rows.max(2)) - 1);
        let top = bottom.saturating_add_unsigned(decades.next_multiple_of(step) as u32);
        Self { bottom, top, step }
    }
}

fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    title: Line<'_>,
    sets: Vec<Dataset<'_>>,
    x: Axis<'_>,
    y: Axis<'_>,
) {
    let grey = Style::new().fg(Color::DarkGray);
    let block = Block::bordered().border_style(grey).title(title);
    let chart = Chart::new(sets).block(block).x_axis(x.style(grey)).y_axis(y.style(grey));
    frame.render_widget(chart.legend_position(None), area);
}

fn line(points: &[(f64, f64)], color: Color) -> Dataset<'_> {
    let set = Dataset::default().data(points).marker(Marker::Braille).style(Style::new().fg(color));
    // A line needs two points.
    set.graph_type(if points.len() > 1 { GraphType::Line } else { GraphType::Scatter })
}

/// The intervals that fit a chart.
struct Recent<'v> {
    view: &'v View,
    most: usize,
}

impl<'v> Recent<'v> {
    fn of(view: &'v View, area: Rect) -> Self {
        let dots = area.width.saturating_sub(FRAME_COLUMNS) * DOTS;
        Self { view, most: usize::from(dots).max(1) }
    }

    /// Returns intervals with their x positions.
    fn samples(&self) -> impl Iterator<Item = (f64, &'v IntervalSample)> {
        self.view.history.last(self.most).enumerate().map(|(place, sample)| (place as f64, sample))
    }

    fn points(&self, of: impl Fn(&IntervalSample) -> Option<f64>) -> Points {
        self.samples().filter_map(|(place, sample)| Some((place, of(sample)?))).collect()
    }

    fn axis(&self, reading: &Reading) -> Axis<'static> {
        let there = self.samples().count();
        let last = there.max(POINTS_MIN.min(self.most)) - 1;
        let ago = reading.interval * there.saturating_sub(1) as u32;
        let axis = Axis::default().bounds([0.0, last.max(1) as f64]);
        if there < last {
            axis
        } else {
            axis.labels([format!("{} ago", at_most_minutes(ago)), "now".to_owned()])
        }
    }
}

fn at_most_minutes(duration: Duration) -> String {
    if duration < Duration::from_secs(1) { time(duration.as_nanos() as f64) } else { span(duration) }
}

/// Rounds up to a round number: 1, 1.5, 2, 3 and so on.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{Decades, round_up};

    #[test]
    fn axes_span_decades_with_one_row_per_label() {
        for (low, high, rows, expected) in [
            // 100 µs, 1 ms, 10 ms
            (120_000, 9_000_000, 7, Decades { bottom: 5, top: 7, step: 1 }),
            (100_000, 100_000, 7, Decades { bottom: 5, top: 6, step: 1 }),
            // 100 µs and 1 s only, in two rows
            (120_000, 900_000_000, 2, Decades { bottom: 5, top: 9, step: 4 }),
            // 10 µs, 1 ms, 100 ms, 10 s
            (12_000, 9_000_000_000, 4, Decades { bottom: 4, top: 10, step: 2 }),
        ] {
            assert_eq!(Decades::of(low, high, rows), expected, "{low} to {high}");
        }
    }

    #[test]
    fn rate_axis_ends_just_above_maximum() {
        for (value, expected) in
            [(1.0, 1.0), (1.2, 1.5), (2469.0, 3000.0), (81.0, 100.0), (60_000.0, 60_000.0)]
        {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}");
        }
    }
}
