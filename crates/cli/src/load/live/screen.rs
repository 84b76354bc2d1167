//! Layout of the screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use thalweg_protobuf::printable::is_unprintable;

use super::view::{Reading, View};
use super::{charts, figures, header, notes};
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
    let Some(reading) = &view.run else {
        let waits = view.start_at.and_then(waits).unwrap_or_else(|| "starting …".to_owned());
        let state = if view.is_ending { "ending …" } else { &waits };
        let [line, _, keys] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        frame.render_widget(Paragraph::new(format!(" {state}")), line);
        draw_keys(view, frame, keys);
        return;
    };
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        frame.render_widget(
            Paragraph::new(header::one_line(view, reading)),
            Rect { height: area.height.min(1), ..area },
        );
        return;
    }
    let lines = notes::lines(view, reading, area.width.into());
    let rows = Rows::of(area.height, figures::rows(&reading.so_far), lines.len() as u16);
    let parts = Layout::vertical([
        Constraint::Length(header::ROWS),
        Constraint::Length(rows.charts),
        Constraint::Length(rows.figures),
        Constraint::Length(rows.notes),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [top, middle, figures, notes, _, keys] = parts.areas(area);
    header::draw(view, reading, frame, top);
    draw_charts(view, reading, frame, middle);
    draw_figures(view, reading, frame, figures);
    notes::draw(lines, frame, notes);
    draw_keys(view, frame, keys);
}

/// Rows of each part.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    charts: u16,
    figures: u16,
    notes: u16,
}

impl Rows {
    /// Allocates rows to figures first, then lines below, then charts.
    fn of(height: u16, figures: u16, lines: u16) -> Self {
        let left = height - header::ROWS - 1;
        let figures = left.min(figures);
        let left = left - figures;
        let charts_min = if left >= CHART_ROWS_MIN { CHART_ROWS_MIN } else { 0 };
        // If there is room for one chart, it takes precedence over some of the lines below.
        let notes = lines.min(left - charts_min);
        let charts = if left - notes >= CHART_ROWS_MIN { left - notes } else { 0 };
        Self { charts, figures, notes }
    }
}

fn draw_charts(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    if area.width < COLUMNS_OF_TWO {
        let chart = if view.shows_in_flight_charts { charts::in_flight } else { charts::latency };
        chart(view, reading, frame, area);
        return;
    }
    let has_all = area.height >= 2 * CHART_ROWS_MIN;
    let rows = if has_all {
        [Constraint::Fill(1), Constraint::Fill(1)]
    } else {
        [Constraint::Fill(1), Constraint::Length(0)]
    };
    let [upper, lower] = Layout::vertical(rows).areas(area);
    if has_all || !view.shows_in_flight_charts {
        let [left, right] = halves(upper);
        charts::rate(view, reading, frame, left);
        charts::latency(view, reading, frame, right);
    }
    if has_all || view.shows_in_flight_charts {
        let [left, right] = halves(if has_all { lower } else { upper });
        charts::in_flight(view, reading, frame, left);
        charts::failures(view, reading, frame, right);
    }
}

fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area)
}

fn draw_figures(view: &View, reading: &Reading, frame: &mut Frame<'_>, area: Rect) {
    if area.width < COLUMNS_OF_TWO {
        figures::table(view, reading, frame, area);
        return;
    }
    let parts = Layout::horizontal([Constraint::Length(figures::COLUMNS), Constraint::Fill(1)]);
    let [left, right] = parts.areas(area);
    figures::table(view, reading, frame, left);
    figures::histogram(view, reading, frame, right);
}

fn draw_keys(view: &View, frame: &mut Frame<'_>, area: Rect) {
    let ending = if view.is_ending { "quit now" } else { "end" };
    let histogram = if view.shows_whole_run { "last interval" } else { "whole run" };
    let pause = if view.is_paused { "go on" } else { "pause" };
    let charts = if view.shows_in_flight_charts { "rate, latency" } else { "in flight, failures" };
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
    fn control_characters_are_not_drawn() {
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
    fn notes_take_space_before_charts_and_after_figures() {
        for (height, lines, expected) in [
            (10, 3, Rows { charts: 0, figures: 6, notes: 0 }),
            (14, 3, Rows { charts: 0, figures: 9, notes: 1 }),
            (24, 0, Rows { charts: 11, figures: 9, notes: 0 }),
            (24, 9, Rows { charts: 6, figures: 9, notes: 5 }),
            (50, 9, Rows { charts: 28, figures: 9, notes: 9 }),
        ] {
            assert_eq!(Rows::of(height, 9, lines), expected, "{height} rows, {lines} lines");
        }
    }
}
