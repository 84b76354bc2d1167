//! Layout of the screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use thalweg_protobuf::printable::is_unprintable;

use super::view::{Now, View};
use super::{below, charts, figures, header};
use crate::load::start_at::waits;

/// On smaller screens only one line is drawn.
const COLUMNS_MIN: u16 = 40;
const ROWS_MIN: u16 = 10;
/// Minimum width for two charts side by side and for the histogram.
const COLUMNS_OF_TWO: u16 = 70;
/// Minimum height of a readable chart.
const CHART_ROWS_MIN: u16 = 6;

pub(super) fn draw(view: &View, frame: &mut Frame<'_>) {
    draw_parts(view, frame);
    replace_unprintable(frame.buffer_mut());
}

/// Replaces control characters, because names, notes and errors come from outside.
fn replace_unprintable(screen: &mut Buffer) {
    for cell in &mut screen.content {
        if cell.symbol().contains(is_unprintable) {
            cell.set_symbol("\u{fffd}");
        }
    }
}

fn draw_parts(view: &View, frame: &mut Frame<'_>) {
    let area = frame.area();
    let Some(now) = &view.run else {
        let waits = view.start_at.and_then(waits).unwrap_or_else(|| "the run begins …".to_owned());
        let state = if view.is_ending { "ending …" } else { &waits };
        let [line, _, keys] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        frame.render_widget(Paragraph::new(format!(" {state}")), line);
        draw_keys(view, frame, keys);
        return;
    };
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        frame.render_widget(
            Paragraph::new(header::one_line(view, now)),
            Rect { height: area.height.min(1), ..area },
        );
        return;
    }
    let lines = below::lines(view, now, area.width.into());
    let rows = Rows::of(area.height, figures::rows(&now.so_far), lines.len() as u16);
    let parts = Layout::vertical([
        Constraint::Length(header::ROWS),
        Constraint::Length(rows.charts),
        Constraint::Length(rows.figures),
        Constraint::Length(rows.below),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [top, middle, figures, below, _, keys] = parts.areas(area);
    header::draw(view, now, frame, top);
    draw_charts(view, now, frame, middle);
    draw_figures(view, now, frame, figures);
    below::draw(lines, frame, below);
    draw_keys(view, frame, keys);
}

/// Rows of each part.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    charts: u16,
    figures: u16,
    below: u16,
}

impl Rows {
    /// Allocates rows to figures first, then lines below, then charts.
    fn of(height: u16, figures: u16, lines: u16) -> Self {
        let left = height - header::ROWS - 1;
        let figures = left.min(figures);
        let left = left - figures;
        let charts_min = if left >= CHART_ROWS_MIN { CHART_ROWS_MIN } else { 0 };
        // If there is room for one chart, it takes precedence over some of the lines below.
        let below = lines.min(left - charts_min);
        let charts = if left - below >= CHART_ROWS_MIN { left - below } else { 0 };
        Self { charts, figures, below }
    }
}

fn draw_charts(view: &View, now: &Now, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    if area.width < COLUMNS_OF_TWO {
        let chart = if view.is_other { charts::in_flight } else { charts::latency };
        chart(view, now, frame, area);
        return;
    }
    let has_all = area.height >= 2 * CHART_ROWS_MIN;
    let rows = if has_all {
        [Constraint::Fill(1), Constraint::Fill(1)]
    } else {
        [Constraint::Fill(1), Constraint::Length(0)]
    };
    let [upper, lower] = Layout::vertical(rows).areas(area);
    if has_all || !view.is_other {
        let [left, right] = halves(upper);
        charts::rate(view, now, frame, left);
        charts::latency(view, now, frame, right);
    }
    if has_all || view.is_other {
        let [left, right] = halves(if has_all { lower } else { upper });
        charts::in_flight(view, now, frame, left);
        charts::failures(view, now, frame, right);
    }
}

fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area)
}

fn draw_figures(view: &View, now: &Now, frame: &mut Frame<'_>, area: Rect) {
    if area.width < COLUMNS_OF_TWO {
        figures::table(view, now, frame, area);
        return;
    }
    let parts = Layout::horizontal([Constraint::Length(figures::COLUMNS), Constraint::Fill(1)]);
    let [left, right] = parts.areas(area);
    figures::table(view, now, frame, left);
    figures::histogram(view, now, frame, right);
}

fn draw_keys(view: &View, frame: &mut Frame<'_>, area: Rect) {
    let ending = if view.is_ending { "end at once" } else { "end" };
    let histogram = if view.is_whole { "last interval" } else { "whole run" };
    let pause = if view.is_paused { "go on" } else { "pause" };
    let charts = if view.is_other { "rate, latency" } else { "in flight, failures" };
    let histogram = match area.width {
        // Too narrow for a histogram.
        ..COLUMNS_OF_TWO => String::new(),
        _ => format!("   h histogram of the {histogram}"),
    };
    let keys = format!(" q {ending}   p {pause}{histogram}   v {charts}");
    frame.render_widget(Paragraph::new(Line::from(keys)).style(Style::new().dim()), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Cell;

    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_is_drawn() {
        let mut terminal = Terminal::new(TestBackend::new(60, 2)).unwrap();
        let hostile = "a\x1b[31m\u{9b}2J\u{202e}\u{2066}\u{61c}\r\x07b";
        let drawn = terminal.draw(|frame| {
            frame.render_widget(Paragraph::new(hostile), frame.area());
            frame.buffer_mut().set_string(0, 1, hostile, Style::new());
            frame.buffer_mut()[(50, 1)].set_symbol(hostile);
            replace_unprintable(frame.buffer_mut());
        });
        let symbols: String = drawn.unwrap().buffer.content.iter().map(Cell::symbol).collect();
        assert!(!symbols.contains(is_unprintable), "{symbols:?}");
        assert!(symbols.contains('a') && symbols.contains('b'), "{symbols:?}");
    }

    #[test]
    fn what_went_wrong_comes_before_charts_and_after_figures() {
        for (height, lines, expected) in [
            (10, 3, Rows { charts: 0, figures: 6, below: 0 }),
            (14, 3, Rows { charts: 0, figures: 9, below: 1 }),
            (24, 0, Rows { charts: 11, figures: 9, below: 0 }),
            (24, 9, Rows { charts: 6, figures: 9, below: 5 }),
            (50, 9, Rows { charts: 28, figures: 9, below: 9 }),
        ] {
            assert_eq!(Rows::of(height, 9, lines), expected, "{height} rows, {lines} lines");
        }
    }
}
