//! Table of figures for the last interval and the whole run, and latency histogram.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_load::LoadRun;
use thalweg_measure::distribution::Latency;
use thalweg_measure::figures::{grouped, percent, time};

use super::view::{Reading, View};
use crate::bars::bars;

const ROWS: u16 = 9;
/// Additional rows for streams: messages in each direction and reply latency.
const ROWS_OF_STREAMS: u16 = 3;
pub(super) const COLUMNS: u16 = 40;
/// Columns of a histogram besides the bar.
const COLUMNS_WITHOUT_BAR: u16 = 20;

/// Returns the number of rows of the table.
pub(super) fn rows(run: &LoadRun) -> u16 {
    if has_streams(run) { ROWS + ROWS_OF_STREAMS } else { ROWS }
}

/// Returns whether message counts differ from call counts.
fn has_streams(run: &LoadRun) -> bool {
    run.messages_sent.max(run.messages_received) > run.calls()
}

/// Draws figures of the last interval next to those of the whole run.
pub(super) fn table(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let (run, last) = (&reading.so_far, view.last.as_ref());
    let past = view.history.last(1).next();
    let counts = |last: Option<u64>, all: u64| (last.map(|last| grouped(last as f64)), grouped(all as f64));
    let times = |of: fn(&Latency) -> u64| {
        let text = |latency: &Latency| time(of(latency) as f64);
        let all = run.latency.as_ref().map(|latency| text(&latency.ns));
        (last.and_then(|last| last.latency_ns).as_ref().map(text), all.unwrap_or_default())
    };
    let interval = time(reading.interval.as_nanos() as f64);
    let mut rows = vec![Line::from(format!("{:>25}{:>13}", format!("last {interval}"), "whole run")).dim()];
    let mut row = |name: &str, (last, all): (Option<String>, String), color: Option<Color>| {
        let name = Span::from(format!(" {name:<12}"));
        let name = if let Some(color) = color { name.fg(color) } else { name };
        let last = Span::from(format!("{:>12}", last.unwrap_or_default())).bold();
        rows.push(Line::from(vec![name, last, format!("{all:>13}").into()]));
    };
    row("calls/s", (past.map(|past| grouped(past.rate)), grouped(run.rate_per_s)), None);
    let bad = (run.failed > 0).then_some(Color::Red);
    row("failed", counts(last.map(|last| last.failed), run.failed), bad);
    if run.scheduled_per_s.is_some() {
        row("late", counts(last.map(|last| last.late), run.late), (run.late > 0).then_some(Color::Yellow));
    }
    row("p50", times(|latency| latency.p50), Some(Color::Green));
    row("p90", times(|latency| latency.p90), Some(Color::Yellow));
    row("p99", times(|latency| latency.p99), Some(Color::LightRed));
    row("p99.9", times(|latency| latency.p99_9), None);
    row("max", times(|latency| latency.max), Some(Color::Magenta));
    if has_streams(run) {
        row("sent", counts(last.map(|last| last.messages_sent), run.messages_sent), None);
        row("received", counts(last.map(|last| last.messages_received), run.messages_received), None);
        if let Some(reply) = &run.reply {
            let text = |latency: &Latency| time(latency.p99 as f64);
            row("reply p99", (last.and_then(|last| last.reply_ns).as_ref().map(text), text(&reply.ns)), None);
        }
    }
    frame.render_widget(Paragraph::new(rows), area);
}

/// Draws the latency distribution of the last interval or the whole run.
pub(super) fn histogram(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let (of, shown) = if view.shows_whole_run {
        let timing = reading.so_far.latency.as_ref();
        ("the whole run", timing.and_then(|it| Some((it.distribution()?, it.ns))))
    } else {
        let last = view.last.as_ref();
        ("the last interval", last.and_then(|it| Some((it.latencies()?, it.latency_ns?))))
    };
    let mut rows = vec![Line::from(format!(" latency in {of}")).dim()];
    if let Some((distribution, exact)) = shown {
        let bars = bars(&distribution, &exact, usize::from(area.height.saturating_sub(1)));
        let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
        let room = f64::from(area.width.saturating_sub(COLUMNS_WITHOUT_BAR));
        for (to, count) in bars {
            let bar = "█".repeat((count as f64 / most * room).ceil() as usize);
            let share =
                if count == 0 { String::new() } else { percent(count as f64 / distribution.len() as f64) };
            rows.push(Line::from(vec![
                Span::from(format!(" {:>8} ", time(to as f64))).style(Style::new().fg(Color::DarkGray)),
                Span::from(bar).fg(Color::Cyan),
                Span::from(format!(" {share}")),
            ]));
        }
    }
    frame.render_widget(Paragraph::new(rows), area);
}
