//! What the terminal shows of the app.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Wrap};

use crate::app::{App, Link, Outgoing, Room};
use crate::editor::Editor;
use crate::proto::Message;
use crate::proto::message::Body;
use crate::proto::send_request::Body as SentBody;

const SIDE_WIDTH: u16 = 18;
/// Transfers that are shown.
const TRANSFERS_MAX: usize = 4;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(crate) fn draw(app: &App, frame: &mut Frame<'_>) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(title(app), head);
    if app.is_logged_in() {
        chat(app, frame, body);
    } else {
        form(app, frame, body);
    }
    frame.render_widget(Paragraph::new(app.notice.as_str()).fg(Color::Yellow), foot);
}

fn title(app: &App) -> Line<'_> {
    let (state, color) = match &app.link {
        Link::Connecting => ("connecting".to_owned(), Color::Yellow),
        Link::Connected => ("connected".to_owned(), Color::Green),
        Link::Waiting(why) => (format!("not connected: {why}"), Color::Red),
    };
    let mut spans = vec![" chat ".bold().reversed(), Span::raw(" ")];
    if app.is_logged_in() {
        spans.push(Span::raw(format!("{} at ", app.me)));
    }
    spans.extend([Span::raw(app.target.as_str()), Span::raw("  "), Span::styled(state, color)]);
    Line::from(spans)
}

fn form(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let form = &app.form;
    let rows = [Constraint::Length(3), Constraint::Length(3), Constraint::Length(2), Constraint::Min(0)];
    let [area] = Layout::horizontal([Constraint::Max(50)]).areas(area);
    let [name, password, keys, _] = Layout::vertical(rows).areas(area);
    field(frame, name, "Name", &form.name, form.name.text().to_owned(), !form.at_password);
    let dots = |text: &str| "\u{2022}".repeat(text.chars().count());
    field(frame, password, "Password", &form.password, dots(form.password.text()), form.at_password);
    let text = if form.waiting {
        "asking the server ..."
    } else {
        "Enter: log in   Ctrl-R: register   Ctrl-C: quit"
    };
    frame.render_widget(Paragraph::new(text).dim(), keys);
}

/// A line that can be written in; `shown` has as many characters as its text.
fn field(frame: &mut Frame<'_>, area: Rect, title: &str, editor: &Editor, shown: String, is_current: bool) {
    let block = Block::bordered().title(title.to_owned());
    let inner = block.inner(area);
    let before: String = shown.chars().take(editor.before_cursor().chars().count()).collect();
    let column = Span::raw(before).width() as u16;
    // What is long is shown around its cursor.
    let hidden = column.saturating_sub(inner.width.saturating_sub(1));
    frame.render_widget(Paragraph::new(shown).scroll((0, hidden)).block(block), area);
    if is_current {
        frame.set_cursor_position(Position::new(inner.x + column - hidden, inner.y));
    }
}

fn chat(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let transfers = app.transfers.len().min(TRANSFERS_MAX) as u16;
    let rows = [Constraint::Min(3), Constraint::Length(transfers), Constraint::Length(3)];
    let [middle, gauges, line] = Layout::vertical(rows).areas(area);
    let side = if area.width >= 4 * SIDE_WIDTH { SIDE_WIDTH } else { 0 };
    let columns = [Constraint::Length(side), Constraint::Min(10), Constraint::Length(side)];
    let [left, messages, right] = Layout::horizontal(columns).areas(middle);
    rooms(app, frame, left);
    if let Some(room) = app.room() {
        conversation(app, room, frame, messages);
        let names = room.present.iter().map(|name| Line::raw(name.as_str()));
        let block = Block::new().borders(Borders::LEFT).title(format!("here: {}", room.present.len()));
        frame.render_widget(Paragraph::new(names.collect::<Vec<_>>()).block(block), right);
    }
    let gauge_rows = Layout::vertical(vec![Constraint::Length(1); usize::from(transfers)]).split(gauges);
    for (transfer, row) in app.transfers.values().zip(gauge_rows.iter()) {
        let ratio = if transfer.size == 0 { 1.0 } else { transfer.done as f64 / transfer.size as f64 };
        let (done, size) = (transfer.done as f64 / 1e6, transfer.size as f64 / 1e6);
        let label = format!("{}: {done:.1} of {size:.1} MB, {:.0} %", transfer.what, ratio * 100.0);
        frame.render_widget(
            Gauge::default().gauge_style(Color::Blue).ratio(ratio.min(1.0)).label(label),
            *row,
        );
    }
    let title = app.room().map_or(String::new(), |room| room.name.clone());
    field(frame, line, &title, &app.line, app.line.text().to_owned(), true);
}

/// Those that are watched, and below them the others that there are.
fn rooms(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let watched = app.rooms.iter().enumerate().map(|(at, room)| {
        let style = if at == app.current { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        let unread = if room.unread > 0 { format!(" ({})", room.unread) } else { String::new() };
        Line::styled(format!("{}{unread}", room.name), style)
    });
    let others = app.listed.iter().filter(|listed| app.rooms.iter().all(|room| room.name != listed.name));
    let others = others.map(|room| Line::styled(room.name.as_str(), Style::new().dim()));
    let block = Block::new().borders(Borders::RIGHT).title("rooms");
    frame.render_widget(Paragraph::new(watched.chain(others).collect::<Vec<_>>()).block(block), area);
}

fn conversation(app: &App, room: &Room, frame: &mut Frame<'_>, area: Rect) {
    let outgoing = app.outgoing.iter().filter(|sent| sent.room == room.name).map(|sent| underway(app, sent));
    let outgoing: Vec<Line<'_>> = outgoing.collect();
    let newest_first = outgoing.into_iter().rev().chain(room.messages.values().rev().map(message));
    // As many as are seen, and not all that there are.
    let (mut lines, mut height) = (Vec::new(), 0);
    let wanted = usize::from(area.height) + room.scrolled;
    for line in newest_first {
        height += paragraph(vec![line.clone()]).line_count(area.width);
        lines.push(line);
        if height >= wanted {
            break;
        }
    }
    lines.reverse();
    let above = height.saturating_sub(wanted);
    frame.render_widget(paragraph(lines).scroll((u16::try_from(above).unwrap_or(u16::MAX), 0)), area);
}

fn paragraph(lines: Vec<Line<'_>>) -> Paragraph<'_> {
    Paragraph::new(lines).wrap(Wrap { trim: false })
}

fn message(message: &Message) -> Line<'_> {
    let text = match &message.body {
        Some(Body::Text(text)) => text.replace('\n', " "),
        Some(Body::File(file)) => {
            format!("[file {}, {:.1} MB: /save {}]", file.name, file.size as f64 / 1e6, message.number)
        }
        None => String::new(),
    };
    Line::from(vec![
        Span::styled(format!("{:>4} {} ", message.number, time_of_day(message.sent_ms)), Style::new().dim()),
        Span::styled(format!("{}: ", message.author), color(&message.author)),
        Span::raw(text),
    ])
}

fn underway<'a>(app: &'a App, message: &'a Outgoing) -> Line<'a> {
    let text = match &message.body {
        SentBody::Text(text) => text,
        SentBody::File(file) => &file.name,
    };
    Line::from(format!(" ... sending {}: {text}", app.me)).dim()
}

/// Hours and minutes of UTC.
fn time_of_day(sent_ms: i64) -> String {
    let minutes = sent_ms.rem_euclid(DAY_MS) / 60_000;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// One for each name.
fn color(name: &str) -> Color {
    const COLORS: [Color; 6] =
        [Color::Cyan, Color::Green, Color::Magenta, Color::Blue, Color::LightRed, Color::LightYellow];
    let sum: usize = name.bytes().map(usize::from).sum();
    COLORS[sum % COLORS.len()]
}
