//! Draws the app.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Wrap};

use crate::app::{App, Room};
use crate::editor::Editor;
use crate::events::{Link, Outgoing};
use crate::proto::Message;
use crate::proto::send_request::Body as SentBody;
use crate::text::{message_text, sanitize, time_of_day};

const SIDE_WIDTH: u16 = 18;
/// Maximum number of transfers shown.
const TRANSFERS_MAX: usize = 4;
/// On terminals with fewer lines, frames are left out.
const HEIGHT_FOR_FRAMES: u16 = 12;
const NOTICE_LINES_MAX: usize = 3;

/// Draws the app, and limits the scroll position to the start of the room.
pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let notice = Paragraph::new(sanitize(&app.notice)).fg(Color::Yellow).wrap(Wrap { trim: true });
    let lines = notice.line_count(area.width).clamp(1, NOTICE_LINES_MAX) as u16;
    let foot = if area.height < HEIGHT_FOR_FRAMES { 1 } else { lines };
    let rows = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(foot)];
    let [head, body, foot] = Layout::vertical(rows).areas(area);
    frame.render_widget(title(app), head);
    frame.render_widget(notice, foot);
    if !app.is_logged_in() {
        form(app, frame, body);
    } else if let Some(scrolled) = chat(app, frame, body) {
        app.scroll_to(scrolled);
    }
}

fn title(app: &App) -> Line<'_> {
    let (state, color) = match &app.link {
        Link::Connecting => ("connecting".to_owned(), Color::Yellow),
        Link::Connected => ("connected".to_owned(), Color::Green),
        Link::Waiting(why) => (format!("not connected: {}", sanitize(why)), Color::Red),
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
    let height = field_height(frame);
    let rows =
        [Constraint::Length(height), Constraint::Length(height), Constraint::Length(2), Constraint::Min(0)];
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

fn field_height(frame: &Frame<'_>) -> u16 {
    if frame.area().height < HEIGHT_FOR_FRAMES { 1 } else { 3 }
}

/// Draws an input line; `shown` has as many characters as its text.
fn field(frame: &mut Frame<'_>, area: Rect, title: &str, editor: &Editor, shown: String, is_current: bool) {
    let block = if area.height < 3 { Block::new() } else { Block::bordered().title(title.to_owned()) };
    let inner = block.inner(area);
    let before: String = shown.chars().take(editor.before_cursor().chars().count()).collect();
    let column = Span::raw(before).width() as u16;
    // Scrolls long text so that the cursor is visible.
    let hidden = column.saturating_sub(inner.width.saturating_sub(1));
    frame.render_widget(Paragraph::new(shown).scroll((0, hidden)).block(block), area);
    if is_current {
        frame.set_cursor_position(Position::new(inner.x + column - hidden, inner.y));
    }
}

/// Returns the scroll position, limited to the room's content.
fn chat(app: &App, frame: &mut Frame<'_>, area: Rect) -> Option<usize> {
    let mut scrolled = None;
    let transfers = app.transfers.len().min(TRANSFERS_MAX) as u16;
    let line = Constraint::Length(field_height(frame));
    let rows = [Constraint::Min(1), Constraint::Length(transfers), line];
    let [middle, gauges, line] = Layout::vertical(rows).areas(area);
    let side = if area.width >= 4 * SIDE_WIDTH { SIDE_WIDTH } else { 0 };
    let columns = [Constraint::Length(side), Constraint::Min(10), Constraint::Length(side)];
    let [left, messages, right] = Layout::horizontal(columns).areas(middle);
    rooms(app, frame, left);
    if let Some(room) = app.room() {
        scrolled = Some(conversation(app, room, frame, messages));
        let names = room.present.iter().map(|name| Line::raw(sanitize(name)));
        let block = Block::new().borders(Borders::LEFT).title(format!("here: {}", room.present.len()));
        frame.render_widget(Paragraph::new(names.collect::<Vec<_>>()).block(block), right);
    }
    let gauge_rows = Layout::vertical(vec![Constraint::Length(1); usize::from(transfers)]).split(gauges);
    for (transfer, row) in app.transfers.values().zip(gauge_rows.iter()) {
        let ratio = if transfer.size == 0 { 1.0 } else { transfer.done as f64 / transfer.size as f64 };
        let (done, size) = (transfer.done as f64 / 1e6, transfer.size as f64 / 1e6);
        let label =
            format!("{}: {done:.1} of {size:.1} MB, {:.0} %", sanitize(&transfer.what), ratio * 100.0);
        frame.render_widget(
            Gauge::default().gauge_style(Color::Blue).ratio(ratio.min(1.0)).label(label),
            *row,
        );
    }
    let title = match (app.room(), scrolled) {
        (Some(room), Some(below @ 1..)) => format!("{}, {below} lines further down", room.name),
        (Some(room), _) => room.name.clone(),
        (None, _) => String::new(),
    };
    field(frame, line, &title, &app.line, app.line.text().to_owned(), true);
    scrolled
}

/// Lists the watched rooms, then the others.
fn rooms(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let watched = app.rooms.iter().enumerate().map(|(at, room)| {
        let style = if at == app.current { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        let unread = if room.unread > 0 { format!(" ({})", room.unread) } else { String::new() };
        Line::styled(format!("{}{unread}", room.name), style)
    });
    let others = app.listed.iter().filter(|listed| app.rooms.iter().all(|room| room.name != listed.name));
    let others = others.map(|room| Line::styled(sanitize(&room.name), Style::new().dim()));
    let block = Block::new().borders(Borders::RIGHT).title("rooms");
    frame.render_widget(Paragraph::new(watched.chain(others).collect::<Vec<_>>()).block(block), area);
}

/// Returns the scroll position, limited to the start of the conversation.
fn conversation(app: &App, room: &Room, frame: &mut Frame<'_>, area: Rect) -> usize {
    let outgoing =
        app.outgoing.iter().filter(|sent| sent.room == room.name).map(|sent| outgoing_line(app, sent));
    let outgoing: Vec<Line<'_>> = outgoing.collect();
    let newest_first = outgoing.into_iter().rev().chain(room.messages.values().rev().map(message));
    // Wraps visible messages only, not all.
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
    room.scrolled.min(height.saturating_sub(usize::from(area.height)))
}

fn paragraph(lines: Vec<Line<'_>>) -> Paragraph<'_> {
    Paragraph::new(lines).wrap(Wrap { trim: false })
}

fn message(message: &Message) -> Line<'_> {
    Line::from(vec![
        Span::styled(format!("{:>4} {} ", message.number, time_of_day(message.sent_ms)), Style::new().dim()),
        Span::styled(format!("{}: ", sanitize(&message.author)), color(&message.author)),
        Span::raw(message_text(message)),
    ])
}

fn outgoing_line<'a>(app: &'a App, message: &'a Outgoing) -> Line<'a> {
    let text = match &message.body {
        SentBody::Text(text) => text,
        SentBody::File(file) => &file.name,
    };
    Line::from(format!(" ... sending {}: {}", app.me, sanitize(text))).dim()
}

/// Picks a color by name.
fn color(name: &str) -> Color {
    const COLORS: [Color; 6] =
        [Color::Cyan, Color::Green, Color::Magenta, Color::Blue, Color::LightRed, Color::LightYellow];
    let sum: usize = name.bytes().map(usize::from).sum();
    COLORS[sum % COLORS.len()]
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::events::Event;
    use crate::proto::message::Body;
    use crate::proto::watch_response::Event as Watched;
    use crate::proto::{self, Present};

    fn app(events: Vec<Event>) -> App {
        let mut app = App::new("server".to_owned(), String::new());
        let logged_in = Event::LoggedIn("ada".to_owned());
        for event in [Event::Link(Link::Connected), logged_in].into_iter().chain(events) {
            app.event(event, [0; 16]);
        }
        app
    }

    fn message(number: u64, author: &str, body: Body) -> Event {
        let (room, author, body) = ("lobby".to_owned(), author.to_owned(), Some(body));
        let message =
            proto::Message { room: room.clone(), number, author, body, ..proto::Message::default() };
        Event::Watched { room, event: Watched::Message(message) }
    }

    fn text(text: &str) -> Body {
        Body::Text(text.to_owned())
    }

    fn screen(app: &mut App, columns: u16, rows: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(app, frame)).unwrap();
        let cells = terminal.backend().buffer().content().chunks(usize::from(columns));
        cells.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
    }

    #[test]
    fn escape_sequences_are_not_passed_to_the_terminal() {
        const BAD: &str = "\x1b]0;title\x07\u{9b}2J\u{202e}";
        let file = proto::File { hash: Vec::new(), name: BAD.to_owned(), size: 1 };
        let room = proto::Room { name: BAD.to_owned(), ..proto::Room::default() };
        let present = Present { names: vec![BAD.to_owned()] };
        let mut app = app(vec![
            message(1, BAD, text(BAD)),
            message(2, "bob", Body::File(file)),
            Event::Rooms(vec![room]),
            Event::Watched { room: "lobby".to_owned(), event: Watched::Present(present) },
            Event::Progress { transfer: 1, what: BAD.to_owned(), done: 1, size: 2 },
            Event::Link(Link::Waiting(BAD.to_owned())),
            Event::Notice(BAD.to_owned()),
        ]);
        let screen = screen(&mut app, 100, 24).join("\n");
        let shown = screen.matches("\u{fffd}]0;title\u{fffd}").count();
        assert!(shown >= 7, "{shown} of 8:\n{screen}");
        assert!(!screen.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{screen}");
    }

    #[test]
    fn input_line_is_visible_at_any_size() {
        let mut app = app(vec![message(1, "bob", text("hello \u{65e5}\u{672c}"))]);
        app.paste("what I write");
        for (columns, rows) in [(20, 5), (20, 4), (60, 8), (80, 12), (200, 60)] {
            let screen = screen(&mut app, columns, rows).join("\n");
            assert!(
                screen.contains("what I write") && screen.contains("hello"),
                "{columns}x{rows}:\n{screen}"
            );
        }
        for (columns, rows) in [(1, 1), (2, 2), (5, 2), (10, 3)] {
            screen(&mut app, columns, rows);
        }
        let mut form = App::new("server".to_owned(), "somebody".to_owned());
        assert!(screen(&mut form, 20, 5).join("\n").contains("somebody"));
    }

    #[test]
    fn scrolling_stops_at_the_beginning() {
        let mut app =
            app((1..=20).map(|number| message(number, "bob", text(&format!("no. {number}.")))).collect());
        for _ in 0..10 {
            app.key(crossterm::event::KeyCode::PageUp.into(), [0; 16]);
        }
        let shown = screen(&mut app, 80, 14).join("\n");
        assert!(shown.contains("no. 1.") && shown.contains("12 lines further down"), "{shown}");
        app.key(crossterm::event::KeyCode::Down.into(), [0; 16]);
        let shown = screen(&mut app, 80, 14).join("\n");
        assert!(!shown.contains("no. 1.") && shown.contains("no. 2."), "{shown}");
    }

    #[test]
    fn long_notice_is_wrapped() {
        let mut app = app(vec![]);
        assert!(screen(&mut app, 80, 24).join("\n").contains("PgDn: scroll"));
    }
}
