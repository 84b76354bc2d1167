//! The network side of the client: runs commands and sends events.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg::{Code, Status};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::connection::{Connection, is_connection_lost};
use crate::events::{Command, Event, Outgoing};
use crate::options::Options;
use crate::proto::accounts_client::AccountsClient;
use crate::proto::watch_request::From;
use crate::proto::watch_response::Event as Watched;
use crate::proto::{
    CreateRoomRequest, Credentials, HistoryRequest, ListRoomsRequest, LogOutRequest, SendRequest, Session,
    WatchRequest,
};
use crate::requests::{Token, with_timeout};
use crate::transfers;

/// Messages shown on entering a room.
const LATEST_COUNT: u32 = 100;
const EARLIER_COUNT: u32 = 100;
/// Interval between updates of the room list.
const ROOMS_INTERVAL: Duration = Duration::from_secs(10);
/// Pause before a call is repeated that the server could not handle.
const PAUSE: Duration = Duration::from_secs(1);
/// Time limit for logging out at the end of the program.
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(1);
const EVENTS: usize = 256;

/// The app's handle of the worker.
pub(crate) struct Worker {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Worker {
    /// Logs out and waits for the worker to end. If the server is reachable, it invalidates the token.
    pub(crate) async fn end(self) {
        let Self { commands, mut events, task } = self;
        // Fails if the worker has ended.
        let _ = commands.send(Command::LogOut);
        drop(commands);
        tokio::select! {
            _ = task => (),
            // Drains the events, so that the worker does not block.
            () = async { while events.recv().await.is_some() {} } => (),
        }
    }
}

pub(crate) fn start(options: &Options) -> Result<Worker, Box<dyn Error>> {
    let (events, receiver) = mpsc::channel(EVENTS);
    let (commands, mut received) = mpsc::unbounded_channel();
    let connection = Connection::start(options, events.clone())?;
    let downloads = options.downloads.clone();
    let task = tokio::spawn(async move {
        let mut session: Option<LoggedIn> = None;
        while let Some(command) = received.recv().await {
            match (command, &mut session) {
                (Command::LogIn { name, password, register }, _) => {
                    match log_in(&connection, Credentials { name, password }, register).await {
                        Ok((name, token)) => {
                            let calls = Arc::new(Calls {
                                connection: connection.clone(),
                                events: events.clone(),
                                token,
                                downloads: downloads.clone(),
                            });
                            session = Some(LoggedIn::new(calls));
                            let _ = events.send(Event::LoggedIn(name)).await;
                        }
                        Err(status) => {
                            let _ = events.send(Event::Refused(status.message().to_owned())).await;
                        }
                    }
                }
                (Command::LogOut, session) => {
                    if let Some(session) = session.take() {
                        session.log_out().await;
                    }
                }
                (command, Some(session)) => session.run_command(command),
                // Meant for a session that is over.
                (_, None) => {}
            }
        }
    });
    Ok(Worker { commands, events: receiver, task })
}

async fn log_in(
    connection: &Connection,
    credentials: Credentials,
    register: bool,
) -> Result<(String, Token), Status> {
    let call = async |channel| {
        let client = AccountsClient::new(channel);
        let request = with_timeout(credentials.clone());
        if register { client.register(request).await } else { client.log_in(request).await }
    };
    let Session { name, token, .. } = connection.call_once(call).await?.into_inner();
    Ok((name, Token::new(&token)?))
}

/// A session with its tasks, which end with it.
struct LoggedIn {
    calls: Arc<Calls>,
    outbox: mpsc::UnboundedSender<Outgoing>,
    transfers: u64,
    tasks: JoinSet<()>,
}

/// State shared by the tasks of a session.
struct Calls {
    connection: Connection,
    events: mpsc::Sender<Event>,
    token: Token,
    downloads: PathBuf,
}

impl LoggedIn {
    fn new(calls: Arc<Calls>) -> Self {
        let mut tasks = JoinSet::new();
        let (outbox, outgoing) = mpsc::unbounded_channel();
        tasks.spawn(calls.clone().send_all(outgoing));
        tasks.spawn(calls.clone().list_rooms());
        Self { calls, outbox, transfers: 0, tasks }
    }

    fn run_command(&mut self, command: Command) {
        while self.tasks.try_join_next().is_some() {}
        let calls = self.calls.clone();
        match command {
            Command::Watch { room, after } => drop(self.tasks.spawn(calls.watch(room, after))),
            Command::Send(message) => {
                // Fails if the session is over; the next session sends the message.
                let _ = self.outbox.send(message);
            }
            Command::CreateRoom(room) => drop(self.tasks.spawn(calls.create_room(room))),
            Command::Earlier { room, before } => drop(self.tasks.spawn(calls.earlier(room, before))),
            Command::SendFile { room, path } => {
                self.transfers += 1;
                self.tasks.spawn(calls.send_file(self.transfers, room, path));
            }
            Command::Save { room, number, file } => {
                self.transfers += 1;
                self.tasks.spawn(calls.save(self.transfers, room, number, file));
            }
            Command::LogIn { .. } | Command::LogOut => unreachable!("are taken before"),
        }
    }

    async fn log_out(self) {
        let Calls { connection, token, .. } = &*self.calls;
        let call = async |channel| token.client(channel).log_out(with_timeout(LogOutRequest {})).await;
        // Without a connection only the local session ends.
        let _ = tokio::time::timeout(LOGOUT_TIMEOUT, connection.call_once(call)).await;
    }
}

impl Calls {
    /// Sends messages one at a time to keep their order, each until the server has responded.
    async fn send_all(self: Arc<Self>, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
        while let Some(Outgoing { id, room, body }) = outgoing.recv().await {
            let message = SendRequest { room, id: id.to_vec(), body: Some(body) };
            let sent = self
                .connection
                .retry_until_response(|channel| {
                    let request = with_timeout(message.clone());
                    let client = self.token.client(channel);
                    async move { client.send(request).await }
                })
                .await;
            match sent {
                // The watch will deliver it.
                Ok(_) => {}
                Err(status) if status.code() == Code::Unauthenticated => {
                    return self.logged_out(&status).await;
                }
                Err(status) => self.send_event(Event::NotSent { id, why: status.message().to_owned() }).await,
            }
        }
    }

    /// Watches a room, and resumes after the last received message whenever the connection is lost.
    async fn watch(self: Arc<Self>, room: String, mut after: u64) {
        loop {
            let from = if after == 0 { From::Latest(LATEST_COUNT) } else { From::After(after) };
            let request = WatchRequest { room: room.clone(), from: Some(from) };
            let watched = self
                .connection
                .call_once(async |channel| {
                    let mut events = self.token.client(channel).watch(request).await?.into_inner();
                    while let Some(event) = events.message().await? {
                        let Some(event) = event.event else { continue };
                        if let Watched::Message(message) = &event {
                            after = after.max(message.number);
                        }
                        self.send_event(Event::Watched { room: room.clone(), event }).await;
                    }
                    Ok(())
                })
                .await;
            match watched {
                Ok(()) => {}
                Err(status) if is_connection_lost(&status) => {}
                Err(status) => match status.code() {
                    Code::Unauthenticated => return self.logged_out(&status).await,
                    Code::NotFound | Code::InvalidArgument | Code::OutOfRange => {
                        let why = status.message().to_owned();
                        return self.send_event(Event::NotWatched { room, why }).await;
                    }
                    _ => self.send_event(Event::Notice(status.message().to_owned())).await,
                },
            }
            // Prevents a busy loop, whatever the server does.
            sleep(PAUSE / 10).await;
        }
    }

    async fn list_rooms(self: Arc<Self>) {
        loop {
            let rooms = self
                .connection
                .retry_until_response(|channel| {
                    let request = with_timeout(ListRoomsRequest {});
                    let client = self.token.client(channel);
                    async move { client.list_rooms(request).await }
                })
                .await;
            match rooms {
                Ok(rooms) => self.send_event(Event::Rooms(rooms.into_inner().rooms)).await,
                Err(status) if status.code() == Code::Unauthenticated => {
                    return self.logged_out(&status).await;
                }
                Err(status) => self.send_event(Event::Notice(status.message().to_owned())).await,
            }
            sleep(ROOMS_INTERVAL).await;
        }
    }

    async fn create_room(self: Arc<Self>, name: String) {
        let request = with_timeout(CreateRoomRequest { name: name.clone() });
        let created = self
            .connection
            .call_once(async |channel| self.token.client(channel).create_room(request).await)
            .await;
        self.send_event(match created {
            Ok(_) => Event::Created(name),
            Err(status) => Event::Failed(status.message().to_owned()),
        })
        .await;
        self.send_event(Event::Done(None)).await;
    }

    async fn earlier(self: Arc<Self>, room: String, before: u64) {
        let history = self
            .connection
            .retry_until_response(|channel| {
                let limit = EARLIER_COUNT;
                let request = with_timeout(HistoryRequest { room: room.clone(), before, limit });
                let client = self.token.client(channel);
                async move { client.history(request).await }
            })
            .await;
        self.send_event(match history {
            Ok(history) => Event::Earlier { room, messages: history.into_inner().messages },
            Err(status) => Event::Failed(status.message().to_owned()),
        })
        .await;
    }

    async fn send_file(self: Arc<Self>, transfer: u64, room: String, path: PathBuf) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = self.progress(transfer, format!("sending {name}"));
        let sent = transfers::upload(&self.connection, &self.token, &path, progress).await;
        self.send_event(match sent {
            Ok(file) => Event::Uploaded { room, file },
            Err(why) => Event::Failed(why),
        })
        .await;
        self.send_event(Event::Done(Some(transfer))).await;
    }

    async fn save(self: Arc<Self>, transfer: u64, room: String, number: u64, file: crate::proto::File) {
        let progress = self.progress(transfer, format!("saving {}", file.name));
        let at = (room.as_str(), number);
        let saved =
            transfers::download(&self.connection, &self.token, at, &file, &self.downloads, progress).await;
        self.send_event(match saved {
            Ok(path) => Event::Notice(format!("saved {}", path.display())),
            Err(why) => Event::Failed(why),
        })
        .await;
        self.send_event(Event::Done(Some(transfer))).await;
    }

    /// Reports progress. Drops updates when the queue is full; later ones supersede them.
    fn progress(&self, transfer: u64, what: String) -> impl Fn(u64, u64) + Send + 'static {
        let events = self.events.clone();
        move |done, size| {
            let _ = events.try_send(Event::Progress { transfer, what: what.clone(), done, size });
        }
    }

    async fn logged_out(&self, status: &Status) {
        self.send_event(Event::LoggedOut(status.message().to_owned())).await;
    }

    async fn send_event(&self, event: Event) {
        // Fails when the program ends.
        let _ = self.events.send(event).await;
    }
}
