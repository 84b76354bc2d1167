//! Rooms, messages and files, for logged-in users.

use std::sync::Arc;

use thalweg::{Request, Response, Status, Streaming};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::files::Files;
use crate::names;
use crate::proto::message::Body;
use crate::proto::send_request::Body as SentBody;
use crate::proto::watch_request::From;
use crate::proto::watch_response::Event;
use crate::proto::{
    self, CaughtUp, CreateRoomRequest, CreateRoomResponse, DownloadRequest, DownloadResponse, HistoryRequest,
    HistoryResponse, ListRoomsRequest, ListRoomsResponse, LogOutRequest, LogOutResponse, Present, Room,
    SendRequest, SendResponse, UploadRequest, UploadResponse, WatchRequest, WatchResponse,
};
use crate::rooms::{self, Rooms};
use crate::sessions::{self, Sessions};
use crate::store::{MESSAGES_A_DAY_MAX, Sent, Store, StoredRoom};
use crate::uploads::Uploads;

const TEXT_LENGTH_MAX: usize = 4_000;
const ID_LENGTH: usize = 16;
/// Maximum number of messages in one response.
const PAGE_MAX: u32 = 500;
const PAGE: u32 = 100;
/// Maximum number of rooms.
const ROOMS_MAX: usize = 1_000;
/// Maximum number of queued messages of a watch.
const QUEUE: usize = 16;

pub(crate) struct Chat {
    pub(crate) store: Arc<Store>,
    pub(crate) files: Arc<Files>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) sessions: Arc<Sessions>,
}

impl proto::chat_server::Chat for Chat {
    async fn log_out(&self, request: Request<LogOutRequest>) -> Result<Response<LogOutResponse>, Status> {
        self.sessions.end(&request).await?;
        Ok(Response::new(LogOutResponse {}))
    }

    async fn list_rooms(
        &self,
        _request: Request<ListRoomsRequest>,
    ) -> Result<Response<ListRoomsResponse>, Status> {
        let rooms = self.store.run(Store::rooms).await?.into_iter().map(|StoredRoom { id, name, last }| {
            Room { name, last, present: self.rooms.room(id).count() as u32 }
        });
        Ok(Response::new(ListRoomsResponse { rooms: rooms.collect() }))
    }

    async fn create_room(
        &self,
        request: Request<CreateRoomRequest>,
    ) -> Result<Response<CreateRoomResponse>, Status> {
        let name = request.into_inner().name;
        names::check("room", &name)?;
        let asked = name.clone();
        let add = move |store: &Store| {
            Ok(if store.rooms()?.len() < ROOMS_MAX { Some(store.add_room(&asked)?) } else { None })
        };
        match self.store.run(add).await? {
            Some(true) => Ok(Response::new(CreateRoomResponse {})),
            Some(false) => Err(Status::already_exists(format!("there is a room {name} already"))),
            None => Err(Status::resource_exhausted(format!("there are {ROOMS_MAX} rooms; no more may be"))),
        }
    }

    async fn send(&self, request: Request<SendRequest>) -> Result<Response<SendResponse>, Status> {
        let author = sessions::caller(&request)?.user.id;
        let SendRequest { room, id, body } = request.into_inner();
        if id.len() != ID_LENGTH {
            let length = id.len();
            return Err(Status::invalid_argument(format!("an id has {ID_LENGTH} bytes; this has {length}")));
        }
        let body = body_of(body)?;
        let room = self.room(room).await?;
        let room_id = room.id;
        match self.store.run(move |store| store.send(room_id, author, &id, &body)).await? {
            Sent::Stored { number, sent_ms } => {
                self.rooms.room(room_id).advance(number);
                Ok(Response::new(SendResponse { number, sent_ms }))
            }
            Sent::IdIsTaken => Err(Status::already_exists("the id is another message's; make a new one")),
            Sent::TooMany => Err(Status::resource_exhausted(format!(
                "you have sent {MESSAGES_A_DAY_MAX} messages today (UTC), and may send more tomorrow"
            ))),
            Sent::NoSuchFile => {
                Err(Status::failed_precondition("the file is not here, or has another size; upload it first"))
            }
        }
    }

    async fn history(&self, request: Request<HistoryRequest>) -> Result<Response<HistoryResponse>, Status> {
        let HistoryRequest { room, before, limit } = request.into_inner();
        let room = self.room(room).await?;
        let limit = if limit == 0 { PAGE } else { limit.min(PAGE_MAX) };
        let messages = self.store.run(move |store| store.messages_before(room.id, before, limit)).await?;
        Ok(Response::new(HistoryResponse { messages }))
    }

    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let caller = sessions::caller(&request)?;
        let WatchRequest { room, from } = request.into_inner();
        let room = self.room(room).await?;
        let after = match from {
            Some(From::After(number)) if number > room.last => {
                let StoredRoom { name, last, .. } = room;
                return Err(Status::out_of_range(format!(
                    "{name} has {last} messages, and none after {number}: is this another server than before?"
                )));
            }
            Some(From::After(number)) => number,
            Some(From::Latest(count)) => room.last.saturating_sub(u64::from(count.min(PAGE_MAX))),
            None => {
                return Err(Status::invalid_argument("say after which number, or how many of the latest"));
            }
        };
        let (sender, receiver) = mpsc::channel(QUEUE);
        let live = self.rooms.room(room.id);
        let watcher = Watcher { store: self.store.clone(), room: room.id, after, sender };
        let stopped = self.rooms.stopped();
        tokio::spawn(async move {
            let sender = watcher.sender.clone();
            // Entered before the list of those present is sent, so that it includes the caller.
            let _presence = live.enter(&caller.user.name);
            let status = tokio::select! {
                status = watcher.run(live.clone()) => status,
                () = sender.closed() => None,
                () = caller.expired() => Some(sessions::expired()),
                () = stopped => Some(Status::unavailable("the server stops; connect again")),
            };
            if let Some(status) = status {
                // Fails if the client has left.
                let _ = sender.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type UploadStream = ReceiverStream<Result<UploadResponse, Status>>;

    async fn upload(
        &self,
        request: Request<Streaming<UploadRequest>>,
    ) -> Result<Response<Self::UploadStream>, Status> {
        let user = sessions::caller(&request)?.user.id;
        let (responses, receiver) = mpsc::channel(QUEUE);
        let uploads = self.uploads.clone();
        tokio::spawn(async move {
            if let Err(status) = uploads.receive(user, request.into_inner(), &responses).await {
                // Fails if the client has left.
                let _ = responses.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type DownloadStream = ReceiverStream<Result<DownloadResponse, Status>>;

    async fn download(
        &self,
        request: Request<DownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        let DownloadRequest { room, number, offset } = request.into_inner();
        let StoredRoom { id, name, .. } = self.room(room).await?;
        let message = self.store.run(move |store| store.message(id, number)).await?;
        match message.and_then(|message| message.body) {
            Some(Body::File(file)) => self.files.send(&file, offset).await.map(Response::new),
            Some(Body::Text(_)) => {
                Err(Status::failed_precondition(format!("message {number} of {name} carries no file")))
            }
            None => Err(Status::not_found(format!("there is no message {number} in {name}"))),
        }
    }
}

impl Chat {
    async fn room(&self, name: String) -> Result<StoredRoom, Status> {
        let asked = name.clone();
        let room = self.store.run(move |store| store.room(&asked)).await?;
        room.ok_or_else(|| Status::not_found(format!("there is no room {name:?}")))
    }
}

/// One watch: sends the messages after `after` as they come.
struct Watcher {
    store: Arc<Store>,
    room: i64,
    after: u64,
    sender: mpsc::Sender<Result<WatchResponse, Status>>,
}

impl Watcher {
    /// Runs until the client has left, or returns the status that ends the watch.
    async fn run(mut self, live: Arc<rooms::Room>) -> Option<Status> {
        let (mut last, mut present) = (live.last(), live.present());
        let mut caught_up = false;
        loop {
            // Marked as seen before the read, so that messages stored during the read count as a change.
            last.borrow_and_update();
            let (room, after) = (self.room, self.after);
            let messages = match self.store.run(move |store| store.messages_after(room, after, PAGE)).await {
                Ok(messages) => messages,
                Err(status) => return Some(status),
            };
            let more = messages.len() == PAGE as usize;
            for message in messages {
                self.after = message.number;
                self.send_event(Event::Message(message)).await?;
            }
            if more {
                continue;
            }
            if !caught_up {
                caught_up = true;
                self.send_event(Event::CaughtUp(CaughtUp { last: self.after })).await?;
                present.mark_changed();
            }
            while !last.has_changed().unwrap_or(false) {
                tokio::select! {
                    _ = last.changed() => break,
                    _ = present.changed() => {
                        let names = present.borrow_and_update().keys().cloned().collect();
                        self.send_event(Event::Present(Present { names })).await?;
                    }
                }
            }
        }
    }

    /// Returns `None` if the client has left.
    async fn send_event(&self, event: Event) -> Option<()> {
        self.sender.send(Ok(WatchResponse { event: Some(event) })).await.ok()
    }
}

/// Validates the body of a message.
fn body_of(body: Option<SentBody>) -> Result<Body, Status> {
    let refused = |why: String| Err(Status::invalid_argument(why));
    match body {
        Some(SentBody::Text(text)) => {
            let length = text.len();
            if length > TEXT_LENGTH_MAX {
                return refused(format!("a message has up to {TEXT_LENGTH_MAX} bytes; this has {length}"));
            }
            if text.trim().is_empty() {
                return refused("the message is empty".to_owned());
            }
            // Terminals interpret control characters.
            if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
                return refused("a message has no control characters but line ends and tabs".to_owned());
            }
            Ok(Body::Text(text))
        }
        Some(SentBody::File(file)) => {
            names::check_file(&file.name)?;
            names::check_hash(&file.hash)?;
            Ok(Body::File(file))
        }
        None => refused("the message has neither text nor file".to_owned()),
    }
}
