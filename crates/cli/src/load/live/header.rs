//! Top of the view: method, load and progress.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph};
use thalweg_load::{Stop, scheduled};
use thalweg_measure::figures::{grouped, span, time};
use thalweg_measure::wording::counted;

use super::view::{Reading, View};

pub(super) const ROWS: u16 = 3;

pub(super) fn draw(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let [what, how, progress] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
    let run = &reading.so_far;
    let state = match (view.is_ending, view.is_paused) {
        (true, _) => " stopping: waiting for calls in flight ",
        (_, true) => " paused ",
        _ => "",
    };
    let name = run.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    let columns = usize::from(area.width);
    let place = format!(" on {}", run.targets.join(", "));
    let is_wide =
        1 + [&name, &run.method, &place].map(|part| part.chars().count()).iter().sum::<usize>() > columns;
    let place = if is_wide { String::new() } else { place };
    let method = Span::from(run.method.clone()).bold();
    frame
        .render_widget(Paragraph::new(Line::from(vec![" ".into(), name.into(), method, place.into()])), what);
    let clauses = truncate_clauses(load_text(reading), columns.saturating_sub(1 + state.chars().count()));
    let line = Line::from(vec![Span::from(state).yellow().bold(), format!(" {clauses}").into()]);
    frame.render_widget(Paragraph::new(line), how);
    draw_gauge(reading, frame, progress);
}

/// Returns as many clauses of a text as fit, at least the first.
fn truncate_clauses(mut text: String, columns: usize) -> String {
    while text.chars().count() > columns
        && let Some(end) = text.rfind(", ")
    {
        text.truncate(end);
    }
    text
}

/// `open loop, 1000 calls/s, 12 of at most 1000 in flight, 3 connections`
fn load_text(reading: &Reading) -> String {
    let run = &reading.so_far;
    // A part of a closed loop has its own workers; a part of an open loop starts some of all calls.
    let [part, part_of] =
        [", ", " of "].map(|behind| run.share.map_or(String::new(), |share| format!("part {share}{behind}")));
    let load = match (&run.schedule, &run.workers) {
        (Some(schedule), _) => {
            let schedule = scheduled(schedule, run.unit());
            format!(
                "open loop, {part_of}{schedule}, {} of at most {} in flight",
                reading.in_flight, run.in_flight
            )
        }
        (None, Some(workers)) => {
            format!("closed loop, {part}{workers} workers, {} in flight", reading.in_flight)
        }
        (None, None) => format!("closed loop, {part}{} of {} in flight", reading.in_flight, run.in_flight),
    };
    let dropped = if run.dropped > 0 {
        format!(", {} did not start", grouped(run.dropped as f64))
    } else {
        String::new()
    };
    format!("{load}{dropped}, {}", counted(u64::from(reading.connections), "connection"))
}

fn draw_gauge(reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    let progress = RunProgress::of(reading);
    let style = if progress.is_warm_up { Style::new().yellow() } else { Style::new().cyan() };
    let [left, gauge, right] = Layout::horizontal([
        Constraint::Length(progress.done.chars().count() as u16 + 2),
        Constraint::Fill(1),
        Constraint::Length(progress.left.chars().count() as u16 + 2),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(format!(" {} ", progress.done)), left);
    let bar = LineGauge::default()
        .ratio(progress.share)
        .label("")
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(style);
    frame.render_widget(bar.unfilled_style(Style::new().fg(Color::DarkGray)), gauge);
    frame.render_widget(Paragraph::new(format!(" {} ", progress.left)), right);
}

/// Progress of a run.
#[derive(Debug, PartialEq)]
struct RunProgress {
    is_warm_up: bool,
    done: String,
    /// 0 to 1.
    share: f64,
    left: String,
}

impl RunProgress {
    fn of(reading: &Reading) -> Self {
        let share = |done: f64, all: f64| if all > 0.0 { (done / all).clamp(0.0, 1.0) } else { 0.0 };
        let Some(measured) = reading.elapsed.checked_sub(reading.warm_up) else {
            let left = reading.warm_up.saturating_sub(reading.elapsed);
            return Self {
                is_warm_up: true,
                done: format!("warming up for {}", time(reading.warm_up.as_nanos() as f64)),
                share: share(reading.elapsed.as_secs_f64(), reading.warm_up.as_secs_f64()),
                left: format!("{} left", span(left)),
            };
        };
        let longest = reading.max_duration;
        let of_time = longest.map_or(0.0, |all| share(measured.as_secs_f64(), all.as_secs_f64()));
        let left_of_time = longest.map(|all| all.saturating_sub(measured).as_secs_f64());
        let longest = longest.map_or(String::new(), |all| format!(" of at most {}", span(all)));
        match reading.stop {
            Stop::After(all) => Self {
                is_warm_up: false,
                done: format!("{} of {}", span(measured.min(all)), span(all)),
                share: share(measured.as_secs_f64(), all.as_secs_f64()),
                left: format!("{} left", span(all.saturating_sub(measured))),
            },
            // A scenario counts flows, each with several calls.
            Stop::Calls(starts) if !reading.so_far.steps.is_empty() => Self {
                is_warm_up: false,
                done: format!("{}{longest}", span(measured)),
                share: of_time,
                left: counted(starts, "flow"),
            },
            Stop::Calls(all) | Stop::Messages(all) => {
                let (calls, what) = match reading.stop {
                    Stop::Messages(_) => (reading.so_far.operations(), "messages"),
                    _ => (reading.so_far.calls(), "calls"),
                };
                let rate = calls as f64 / (reading.so_far.duration_ns as f64 / 1e9).max(1e-3);
                let left_s = (all.saturating_sub(calls) as f64 / rate.max(1e-3)).min(1e9);
                let left_s = left_of_time.map_or(left_s, |of_time| left_s.min(of_time));
                let left = if calls == 0 {
                    String::new()
                } else {
                    format!("about {} left", span(Duration::from_secs_f64(left_s)))
                };
                // The run ends at whichever limit is reached first.
                Self {
                    is_warm_up: false,
                    done: format!(
                        "{}{longest}, {} of {} {what}",
                        span(measured),
                        grouped(calls as f64),
                        grouped(all as f64)
                    ),
                    share: share(calls as f64, all as f64).max(of_time),
                    left,
                }
            }
        }
    }
}

/// Returns a summary for a terminal with room for one line only.
pub(super) fn one_line(view: &View, reading: &Reading) -> String {
    let progress = RunProgress::of(reading);
    let Some(last) = &view.last else { return progress.done };
    let rate = view.history.last(1).next().map_or(0.0, |sample| sample.rate);
    let p99 = last.latency_ns.map_or(String::new(), |latency| format!(", p99 {}", time(latency.p99 as f64)));
    let failed = reading.so_far.failed;
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{} calls/s{p99}{failed}, {}", grouped(rate), progress.done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_that_do_not_fit_are_omitted() {
        let text = "open loop, 1000 calls/s, 12 of at most 1000 in flight, 3 connections";
        for (columns, expected) in [
            (80, text),
            (60, "open loop, 1000 calls/s, 12 of at most 1000 in flight"),
            (40, "open loop, 1000 calls/s"),
            (5, "open loop"),
        ] {
            assert_eq!(truncate_clauses(text.to_owned(), columns), expected, "{columns}");
        }
    }
}
