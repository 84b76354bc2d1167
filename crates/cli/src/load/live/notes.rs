//! Lower part of the view: errors, notes, scenario steps, servers and tried rates.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use thalweg_load::{LoadRun, Search};
use thalweg_measure::figures::{grouped, percent, time};
use thalweg_measure::text::fitted;
use thalweg_protobuf::printable;

use super::view::{Reading, View};

/// Returns the lines in order of importance, because there may not be room for all.
pub(super) fn lines(view: &View, reading: &Reading, columns: usize) -> Vec<Line<'static>> {
    let run = &reading.so_far;
    let mut lines = Vec::new();
    let mut say = |text: &str, color| {
        let text = fitted(&format!(" {}", printable::line(text)), columns);
        lines.extend(text.lines().map(|line| Line::from(line.to_owned()).fg(color)));
    };
    if run.failed > 0 {
        let errors: Vec<String> = run.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
        say(&format!("failed: {}", errors.join(", ")), Color::Red);
    }
    let attempts = run.attempts.text();
    if !attempts.is_empty() {
        say(&attempts, Color::Yellow);
    }
    run.not_valid.reasons.iter().for_each(|reason| say(&reason.text, Color::Red));
    // An incomplete run is visible anyway.
    let notes = run.notes.iter().filter(|note| !note.text.starts_with("the run is not complete"));
    notes.for_each(|note| say(&note.text, Color::Yellow));
    view.notices.iter().for_each(|notice| say(notice, Color::Yellow));
    if let Some(search) = &run.search {
        tries(search, run, columns, &mut lines);
    }
    steps(run, &mut lines);
    servers(run, &mut lines);
    lines
}

/// Adds the tried rates, latest first.
fn tries(search: &Search, run: &LoadRun, columns: usize, lines: &mut Vec<Line<'static>>) {
    let trying = run.schedule.as_deref().unwrap_or_default();
    let unit = run.unit();
    let found = |rate| format!("{} {unit}s/s", grouped(rate));
    let found = search.found_per_s.map_or("none yet".to_owned(), found);
    let conditions = search.conditions.join(", ");
    let head = format!(" highest rate that meets {conditions}: {found}; now trying {trying} {unit}s/s");
    lines.extend(fitted(&head, columns).lines().map(|line| Line::from(line.to_owned()).bold()));
    for tried in search.tries.iter().rev() {
        let rate = grouped(tried.rate_per_s);
        let (result, color) = if tried.is_met { ("met", Color::Green) } else { ("too high", Color::Red) };
        let line = format!(" {rate:>9} {unit}s/s  {result:<9} {}", tried.figures.join(", "));
        lines.push(Line::from(line).fg(color));
    }
}

fn steps(run: &LoadRun, lines: &mut Vec<Line<'static>>) {
    if run.steps.is_empty() {
        return;
    }
    let name =
        |flow: &str, step: &str| if flow.is_empty() { step.to_owned() } else { format!("{flow}, {step}") };
    let names: Vec<String> = run.steps.iter().map(|step| name(&step.flow, &step.step)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(4, 30);
    let head = format!(" {:<width$} {:>12} {:>9} {:>9} {:>9}", "step", "ok", "failed", "p50", "p99");
    lines.push(Line::from(head).dim());
    for (name, step) in names.iter().zip(&run.steps) {
        let name: String = name.chars().take(width).collect();
        let [p50, p99] = match &step.latency {
            Some(latency) => [latency.ns.p50, latency.ns.p99].map(|ns| time(ns as f64)),
            None => [String::new(), String::new()],
        };
        let (ok, failed) = (grouped(step.ok as f64), grouped(step.failed as f64));
        lines.push(Line::from(format!(" {name:<width$} {ok:>12} {failed:>9} {p50:>9} {p99:>9}")));
    }
}

fn servers(run: &LoadRun, lines: &mut Vec<Line<'static>>) {
    let width =
        run.servers.iter().map(|server| server.server.chars().count()).max().unwrap_or(0).clamp(6, 45);
    for (at, (server, share, rate)) in run.balanced().enumerate() {
        if at == 0 {
            let head = format!(
                " {:<width$} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                "server", "calls", "share", "calls/s", "failed", "p50", "p99", "max"
            );
            lines.push(Line::from(head).dim());
        }
        let name: String = printable::line(&server.server).chars().take(width).collect();
        if let Some(why) = server.not_connected.as_ref().filter(|_| server.calls == 0) {
            let line = format!(" {name:<width$} not connected: {}", printable::line(why));
            lines.push(Line::from(line).fg(Color::Red));
            continue;
        }
        let (calls, share, rate) = (grouped(server.calls as f64), percent(share), grouped(rate));
        let failed = server.failed.map_or(String::new(), |failed| grouped(failed as f64));
        let [p50, p99, max] = match server.times() {
            Some(times) => times.map(|ns| time(ns as f64)),
            None => [const { String::new() }; 3],
        };
        lines.push(Line::from(format!(
            " {name:<width$} {calls:>12} {share:>9} {rate:>9} {failed:>9} {p50:>9} {p99:>9} {max:>9}"
        )));
    }
}

/// Draws as many lines as fit. The last one counts the omitted ones.
pub(super) fn draw(mut lines: Vec<Line<'static>>, frame: &mut Frame<'_>, area: Rect) {
    let room = usize::from(area.height);
    if lines.len() > room && room > 1 {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(Line::from(format!(" … {more} more")).dim());
    }
    frame.render_widget(Paragraph::new(lines), area);
}
