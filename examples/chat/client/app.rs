//! The client's state: takes keys and events, returns commands. Does no I/O.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Editor;
use crate::events::{Command, Event, Id, Link, Outgoing};
use crate::proto::message::Body;
use crate::proto::send_request::Body as SentBody;
use crate::proto::watch_response::Event as Watched;
use crate::proto::{self, Message};

/// Always exists.
const FIRST_ROOM: &str = "lobby";
/// Maximum number of messages kept per room; the oldest are dropped and can be fetched again.
const MESSAGES_KEPT_MAX: usize = 5_000;
/// Maximum length of a message in bytes, as on the server.
const TEXT_LENGTH_MAX: usize = 4_000;
/// Lines of a page, whatever the terminal's height.
const PAGE: usize = 10;

pub(crate) const HELP: &str = "/join ROOM  /create ROOM  /rooms  /who  /send FILE  /save NUMBER  /logout  /quit  \
                               Tab: next room  PgUp PgDn: scroll";

pub(crate) struct App {
    pub(crate) target: String,
    pub(crate) link: Link,
    pub(crate) form: Form,
    /// Empty while nobody is logged in; the form is shown then.
    pub(crate) me: String,
    /// The watched rooms.
    pub(crate) rooms: Vec<Room>,
    pub(crate) current: usize,
    /// All rooms of the server.
    pub(crate) listed: Vec<proto::Room>,
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) transfers: BTreeMap<u64, Transfer>,
    pub(crate) line: Editor,
    pub(crate) notice: String,
    pub(crate) ended: bool,
    /// The author of `outgoing`.
    author: String,
    /// Number of rooms being created and files being transferred.
    pending_requests: usize,
}

#[derive(Default)]
pub(crate) struct Form {
    pub(crate) name: Editor,
    pub(crate) password: Editor,
    pub(crate) at_password: bool,
    pub(crate) waiting: bool,
}

pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) messages: BTreeMap<u64, Message>,
    pub(crate) present: Vec<String>,
    pub(crate) unread: usize,
    /// Lines from the end.
    pub(crate) scrolled: usize,
    /// Number of the latest message received.
    last: u64,
    asked_before: u64,
}

pub(crate) struct Transfer {
    pub(crate) what: String,
    pub(crate) done: u64,
    pub(crate) size: u64,
}

impl App {
    pub(crate) fn new(target: String, name: String) -> Self {
        let form = Form { at_password: !name.is_empty(), name: Editor::new(name), ..Form::default() };
        Self {
            target,
            link: Link::Connecting,
            form,
            me: String::new(),
            rooms: Vec::new(),
            current: 0,
            listed: Vec::new(),
            outgoing: Vec::new(),
            transfers: BTreeMap::new(),
            line: Editor::default(),
            notice: String::new(),
            ended: false,
            author: String::new(),
            pending_requests: 0,
        }
    }

    pub(crate) fn room(&self) -> Option<&Room> {
        self.rooms.get(self.current)
    }

    /// Returns whether all commands are done and all received messages are shown.
    pub(crate) fn is_idle(&self) -> bool {
        // The list of those present includes oneself, and arrives after the earlier messages.
        let is_shown = |room: &Room| !room.present.is_empty();
        self.outgoing.is_empty() && self.pending_requests == 0 && self.rooms.iter().all(is_shown)
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        !self.me.is_empty()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.editor().insert(text);
    }

    fn editor(&mut self) -> &mut Editor {
        match (self.is_logged_in(), self.form.at_password) {
            (true, _) => &mut self.line,
            (false, true) => &mut self.form.password,
            (false, false) => &mut self.form.name,
        }
    }

    /// `id` is new for each key.
    pub(crate) fn key(&mut self, key: KeyEvent, id: Id) -> Vec<Command> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'q')) {
            self.ended = true;
            return Vec::new();
        }
        if self.is_logged_in() { self.chat_key(key, id) } else { self.form_key(key, control) }
    }

    fn form_key(&mut self, key: KeyEvent, control: bool) -> Vec<Command> {
        match key.code {
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Up | KeyCode::Down => {
                self.form.at_password = !self.form.at_password;
            }
            KeyCode::Enter if !self.form.at_password => self.form.at_password = true,
            KeyCode::Enter => return self.log_in(false),
            KeyCode::Char('r') if control => return self.log_in(true),
            _ => {
                self.editor().key(key);
            }
        }
        Vec::new()
    }

    fn log_in(&mut self, register: bool) -> Vec<Command> {
        let (name, password) =
            (self.form.name.text().trim().to_owned(), self.form.password.text().to_owned());
        if name.is_empty() || password.is_empty() {
            "write a name and a password".clone_into(&mut self.notice);
            return Vec::new();
        }
        if std::mem::replace(&mut self.form.waiting, true) {
            return Vec::new();
        }
        self.notice.clear();
        vec![Command::LogIn { name, password, register }]
    }

    fn chat_key(&mut self, key: KeyEvent, id: Id) -> Vec<Command> {
        match key.code {
            KeyCode::Enter => {
                self.notice.clear();
                let line = self.line.take();
                return self.submit(line.trim(), id);
            }
            KeyCode::Tab => self.enter(self.current + 1),
            KeyCode::BackTab => self.enter(self.current + self.rooms.len().max(1) - 1),
            KeyCode::PageUp | KeyCode::Up => {
                let lines = if key.code == KeyCode::Up { 1 } else { PAGE };
                return self.scroll_up(lines);
            }
            KeyCode::PageDown | KeyCode::Down => {
                let lines = if key.code == KeyCode::Down { 1 } else { PAGE };
                if let Some(room) = self.rooms.get_mut(self.current) {
                    room.scrolled = room.scrolled.saturating_sub(lines);
                }
            }
            _ => {
                self.line.key(key);
            }
        }
        Vec::new()
    }

    /// Runs a command or sends a message.
    pub(crate) fn submit(&mut self, line: &str, id: Id) -> Vec<Command> {
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        let room = self.room().map(|room| room.name.clone());
        match (word, rest, room) {
            ("", ..) => Vec::new(),
            ("/quit", ..) => {
                self.ended = true;
                Vec::new()
            }
            ("/logout", ..) => {
                self.leave(String::new());
                self.outgoing.clear();
                vec![Command::LogOut]
            }
            ("/help", ..) => self.say(HELP),
            ("/rooms", ..) => {
                let rooms = self.listed.iter().map(|room| format!("{} ({} here)", room.name, room.present));
                self.say(&rooms.collect::<Vec<_>>().join("  "))
            }
            ("/who", _, Some(room)) => {
                let names = self.room().map(|room| room.present.join(" ")).unwrap_or_default();
                self.say(&format!("in {room}: {names}"))
            }
            ("/join" | "/create" | "/send" | "/save", "", _) => self.say(&format!("{word} what? {HELP}")),
            ("/join", name, _) => self.join(name),
            ("/create", name, _) => self.start_request(Command::CreateRoom(name.to_owned())),
            ("/send", path, Some(room)) => {
                self.start_request(Command::SendFile { room, path: PathBuf::from(path) })
            }
            ("/save", number, Some(room)) => self.save(number, room),
            (word, ..) if word.starts_with('/') && !word.starts_with("//") => {
                self.say(&format!("there is no command {word}; begin with // if it is a message; {HELP}"))
            }
            (_, _, Some(_)) if line.len() > TEXT_LENGTH_MAX => {
                self.line = Editor::new(line.to_owned());
                self.say(&format!("a message has up to {TEXT_LENGTH_MAX} bytes; this has {}", line.len()))
            }
            (_, _, Some(room)) => {
                let text = if line.starts_with("//") { &line[1..] } else { line };
                self.send(id, room, SentBody::Text(text.to_owned()))
            }
            (_, _, None) => self.say("/join a room first"),
        }
    }

    fn start_request(&mut self, command: Command) -> Vec<Command> {
        self.pending_requests += 1;
        vec![command]
    }

    fn say(&mut self, text: &str) -> Vec<Command> {
        text.clone_into(&mut self.notice);
        Vec::new()
    }

    fn save(&mut self, number: &str, room: String) -> Vec<Command> {
        let number = number.trim_start_matches('#').parse().ok();
        let message = number.and_then(|number: u64| self.room()?.messages.get(&number));
        match message.map(|message| (message.number, message.body.clone())) {
            Some((number, Some(Body::File(file)))) => {
                self.start_request(Command::Save { room, number, file })
            }
            Some(_) => self.say("this message carries no file"),
            None => self.say("/save NUMBER: the number of a message that carries a file, such as 12"),
        }
    }

    fn send(&mut self, id: Id, room: String, body: SentBody) -> Vec<Command> {
        let message = Outgoing { id, room, body };
        self.outgoing.push(message.clone());
        if let Some(room) = self.rooms.get_mut(self.current) {
            room.scrolled = 0;
        }
        vec![Command::Send(message)]
    }

    fn join(&mut self, name: &str) -> Vec<Command> {
        let known = self.listed.iter().find(|room| room.name.eq_ignore_ascii_case(name));
        let name = known.map_or(name, |room| &room.name).to_owned();
        if let Some(at) = self.rooms.iter().position(|room| room.name.eq_ignore_ascii_case(&name)) {
            self.enter(at);
            return Vec::new();
        }
        self.rooms.push(Room::new(name.clone()));
        self.enter(self.rooms.len() - 1);
        vec![Command::Watch { room: name, after: 0 }]
    }

    fn enter(&mut self, at: usize) {
        self.current = at.checked_rem(self.rooms.len()).unwrap_or(0);
        if let Some(room) = self.rooms.get_mut(self.current) {
            room.unread = 0;
        }
    }

    /// Scrolls to `lines` from the end.
    pub(crate) fn scroll_to(&mut self, lines: usize) {
        if let Some(room) = self.rooms.get_mut(self.current) {
            room.scrolled = lines;
        }
    }

    fn scroll_up(&mut self, lines: usize) -> Vec<Command> {
        let Some(room) = self.rooms.get_mut(self.current) else { return Vec::new() };
        room.scrolled += lines;
        let first = room.messages.keys().next().copied().unwrap_or(0);
        // A message takes at least one line, so this fetches earlier messages before they come into view.
        let near = room.scrolled + 2 * PAGE > room.messages.len();
        if first > 1 && near && room.asked_before != first {
            room.asked_before = first;
            return vec![Command::Earlier { room: room.name.clone(), before: first }];
        }
        Vec::new()
    }

    /// Returns to the form. Unsent messages are kept for the next session of the same user.
    fn leave(&mut self, why: String) {
        self.form.name = Editor::new(std::mem::take(&mut self.me));
        (self.form.at_password, self.form.waiting) = (true, false);
        self.transfers.clear();
        self.pending_requests = 0;
        self.notice = why;
    }

    /// `id` is new for each event.
    pub(crate) fn event(&mut self, event: Event, id: Id) -> Vec<Command> {
        match event {
            Event::Link(link) => self.link = link,
            Event::LoggedIn(name) => return self.logged_in(name),
            Event::Refused(why) => {
                self.form.waiting = false;
                self.notice = why;
            }
            // Every task of a session reports its end.
            Event::LoggedOut(why) if self.is_logged_in() => {
                self.leave(why);
                return vec![Command::LogOut];
            }
            Event::LoggedOut(_) => {}
            Event::Rooms(rooms) => self.listed = rooms,
            Event::Created(name) => return self.join(&name),
            Event::Watched { room, event } => self.watched(&room, event),
            Event::NotWatched { room, why } => {
                self.rooms.retain(|watched| watched.name != room);
                self.enter(self.current.min(self.rooms.len().saturating_sub(1)));
                self.notice = why;
            }
            Event::Earlier { room, messages } => {
                if let Some(room) = self.rooms.iter_mut().find(|known| known.name == room) {
                    room.messages.extend(messages.into_iter().map(|message| (message.number, message)));
                }
            }
            Event::NotSent { id, why } => {
                let at = self.outgoing.iter().position(|message| message.id == id);
                // Returned for editing, unless something else has been typed in the meantime.
                if let Some(Outgoing { body: SentBody::Text(text), .. }) =
                    at.map(|at| self.outgoing.remove(at))
                    && self.line.text().is_empty()
                {
                    self.line = Editor::new(text);
                }
                self.notice = format!("not sent: {why}");
            }
            Event::Uploaded { room, file } => return self.send(id, room, SentBody::File(file)),
            Event::Progress { transfer, what, done, size } => {
                self.transfers.insert(transfer, Transfer { what, done, size });
            }
            Event::Done(transfer) => {
                self.pending_requests = self.pending_requests.saturating_sub(1);
                transfer.and_then(|transfer| self.transfers.remove(&transfer));
            }
            Event::Notice(text) | Event::Failed(text) => self.notice = text,
        }
        Vec::new()
    }

    fn logged_in(&mut self, name: String) -> Vec<Command> {
        self.form = Form::default();
        HELP.clone_into(&mut self.notice);
        if self.author != name {
            self.rooms.clear();
            self.outgoing.clear();
            self.author.clone_from(&name);
        }
        self.me = name;
        let mut commands = Vec::new();
        if self.rooms.is_empty() {
            commands.extend(self.join(FIRST_ROOM));
        } else {
            let watch = |room: &Room| Command::Watch { room: room.name.clone(), after: room.last };
            commands.extend(self.rooms.iter().map(watch));
        }
        commands.extend(self.outgoing.iter().cloned().map(Command::Send));
        commands
    }

    fn watched(&mut self, room: &str, event: Watched) {
        let Some(at) = self.rooms.iter().position(|known| known.name == room) else { return };
        let is_shown = at == self.current;
        let room = &mut self.rooms[at];
        match event {
            Watched::Message(message) => {
                self.outgoing.retain(|sent| sent.id[..] != message.id[..]);
                room.last = room.last.max(message.number);
                room.unread += usize::from(!is_shown);
                // Keeps the view in place while scrolled back.
                room.scrolled += usize::from(room.scrolled > 0);
                room.messages.insert(message.number, message);
                if room.messages.len() > MESSAGES_KEPT_MAX && room.scrolled == 0 {
                    room.messages.pop_first();
                }
            }
            Watched::Present(present) => room.present = present.names,
            Watched::CaughtUp(_) => {}
        }
    }
}

impl Room {
    fn new(name: String) -> Self {
        Self {
            name,
            messages: BTreeMap::new(),
            present: Vec::new(),
            unread: 0,
            scrolled: 0,
            last: 0,
            asked_before: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Present;

    /// A step of a test.
    enum Step {
        Line(&'static str),
        Key(KeyCode),
        Event(Event),
    }

    /// Logs in as ada, runs the steps and compares the commands of the last one.
    fn check(steps: Vec<Step>, commands: &[Command]) -> App {
        let mut app = App::new("server".to_owned(), String::new());
        let mut wanted = app.event(Event::LoggedIn("ada".to_owned()), [0; 16]);
        for (at, step) in steps.into_iter().enumerate() {
            let id = [at as u8 + 1; 16];
            wanted = match step {
                Step::Line(line) => {
                    app.paste(line);
                    app.key(KeyCode::Enter.into(), id)
                }
                Step::Key(code) => app.key(code.into(), id),
                Step::Event(event) => app.event(event, id),
            };
        }
        assert_eq!(wanted, commands);
        app
    }

    fn message(number: u64, id: u8) -> Event {
        let body = Some(Body::Text(format!("text {number}")));
        let message =
            Message { room: "lobby".to_owned(), number, id: vec![id; 16], body, ..Message::default() };
        watched(Watched::Message(message))
    }

    fn watched(event: Watched) -> Event {
        Event::Watched { room: "lobby".to_owned(), event }
    }

    fn outgoing(id: u8, text: &str) -> Outgoing {
        Outgoing { id: [id; 16], room: "lobby".to_owned(), body: SentBody::Text(text.to_owned()) }
    }

    fn watch(room: &str, after: u64) -> Command {
        Command::Watch { room: room.to_owned(), after }
    }

    #[test]
    fn lobby_is_the_first_room() {
        let app = check(vec![], &[watch("lobby", 0)]);
        assert_eq!(app.room().unwrap().name, "lobby");
    }

    #[test]
    fn message_is_outgoing_until_received() {
        let sent = Command::Send(outgoing(1, "hello"));
        assert_eq!(check(vec![Step::Line("hello")], &[sent]).outgoing.len(), 1);
        let app = check(vec![Step::Line("hello"), Step::Event(message(1, 1))], &[]);
        assert_eq!(app.outgoing, []);
        assert_eq!(app.room().unwrap().messages.len(), 1);
    }

    #[test]
    fn duplicate_message_is_shown_once() {
        let app = check(vec![Step::Event(message(1, 9)), Step::Event(message(1, 9))], &[]);
        assert_eq!(app.room().unwrap().messages.len(), 1);
    }

    #[test]
    fn rejected_message_can_be_edited() {
        let long: &'static str = Box::leak("x".repeat(TEXT_LENGTH_MAX + 1).into_boxed_str());
        let app = check(vec![Step::Line(long)], &[]);
        assert!(app.notice.contains("up to 4000 bytes; this has 4001") && app.line.text() == long);
        let refused = || Event::NotSent { id: [1; 16], why: "too many".to_owned() };
        let app = check(vec![Step::Line("hello"), Step::Event(refused())], &[]);
        assert_eq!((app.line.text(), app.notice.as_str()), ("hello", "not sent: too many"));
        let app =
            check(vec![Step::Line("hello"), Step::Key(KeyCode::Char('x')), Step::Event(refused())], &[]);
        assert_eq!((app.line.text(), app.outgoing.len()), ("x", 0));
    }

    #[test]
    fn double_slash_sends_a_slash() {
        check(vec![Step::Line("//etc is a folder")], &[Command::Send(outgoing(1, "/etc is a folder"))]);
    }

    #[test]
    fn app_is_busy_until_requests_finish() {
        let idle = |steps: Vec<Step>, idle: bool| {
            let mut app = App::new("server".to_owned(), String::new());
            app.event(Event::LoggedIn("ada".to_owned()), [0; 16]);
            app.event(watched(Watched::Present(Present { names: vec!["ada".to_owned()] })), [0; 16]);
            assert!(app.is_idle());
            for step in steps {
                match step {
                    Step::Line(line) => drop(app.submit(line, [1; 16])),
                    Step::Event(event) => drop(app.event(event, [2; 16])),
                    Step::Key(_) => unreachable!(),
                }
            }
            assert_eq!(app.is_idle(), idle);
        };
        idle(vec![Step::Line("hello")], false);
        idle(vec![Step::Line("hello"), Step::Event(message(1, 1))], true);
        idle(vec![Step::Line("/send a.txt")], false);
        idle(vec![Step::Line("/send a.txt"), Step::Event(Event::Done(Some(1)))], true);
        idle(vec![Step::Line("/create den")], false);
        idle(vec![Step::Line("/join den")], false);
    }

    #[test]
    fn next_session_resumes_the_last_one() {
        let steps = vec![
            Step::Event(message(7, 9)),
            Step::Line("hello"),
            Step::Event(Event::LoggedOut("over".to_owned())),
            Step::Event(Event::LoggedIn("ada".to_owned())),
        ];
        check(steps, &[watch("lobby", 7), Command::Send(outgoing(2, "hello"))]);
    }

    #[test]
    fn outgoing_messages_of_another_user_are_dropped() {
        let steps = vec![
            Step::Line("hello"),
            Step::Event(Event::LoggedOut("over".to_owned())),
            Step::Event(Event::LoggedIn("bob".to_owned())),
        ];
        check(steps, &[watch("lobby", 0)]);
    }

    #[test]
    fn who_is_there() {
        let present = Present { names: vec!["ada".to_owned(), "bob".to_owned()] };
        let app = check(vec![Step::Event(watched(Watched::Present(present)))], &[]);
        assert_eq!(app.room().unwrap().present, ["ada", "bob"]);
    }

    #[test]
    fn rooms() {
        let app = check(vec![Step::Line("/join Den")], &[watch("Den", 0)]);
        assert_eq!(app.current, 1);
        let app = check(vec![Step::Line("/join Den"), Step::Key(KeyCode::Tab)], &[]);
        assert_eq!(app.current, 0);
        let app = check(vec![Step::Line("/join Den"), Step::Event(message(1, 9))], &[]);
        assert_eq!(app.rooms[0].unread, 1);
        let app = check(vec![Step::Line("/join Den"), Step::Line("/join LOBBY")], &[]);
        assert_eq!((app.current, app.rooms.len()), (0, 2));
        let refused = Event::NotWatched { room: "Den".to_owned(), why: "there is no room".to_owned() };
        let app = check(vec![Step::Line("/join Den"), Step::Event(refused)], &[]);
        assert_eq!((app.current, app.rooms.len(), app.notice.as_str()), (0, 1, "there is no room"));
    }

    #[test]
    fn earlier_messages_are_requested_once() {
        let asked = Command::Earlier { room: "lobby".to_owned(), before: 7 };
        check(vec![Step::Event(message(7, 9)), Step::Key(KeyCode::PageUp)], &[asked]);
        check(vec![Step::Event(message(7, 9)), Step::Key(KeyCode::PageUp), Step::Key(KeyCode::PageUp)], &[]);
        check(vec![Step::Event(message(1, 9)), Step::Key(KeyCode::PageUp)], &[]);
    }

    #[test]
    fn invalid_commands_show_a_notice() {
        let says = |line, text: &str| {
            let app = check(vec![Step::Line(line)], &[]);
            assert!(app.notice.contains(text), "{line}: {}", app.notice);
        };
        says("/jump", "there is no command /jump");
        says("/who", "in lobby: ");
        says("/send", "/send what?");
        says("/save 7", "the number of a message that carries a file");
    }
}
