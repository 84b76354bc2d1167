//! The API as other clients see it: errors, health and reflection.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use thalweg::metadata::{Ascii, MetadataValue};
use thalweg::tls::{Certificate, ClientTlsConfig};
use thalweg::{Channel, Code, InterceptedChannel, Request, Status, Streaming};
use thalweg_services::health::{self, ServingStatus};
use thalweg_services::reflection::pb::ServerReflectionRequest;
use thalweg_services::reflection::pb::server_reflection_client::ServerReflectionClient;
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;

use crate::proto::accounts_client::AccountsClient;
use crate::proto::chat_client::ChatClient;
use crate::proto::message::Body;
use crate::proto::send_request::Body as SentBody;
use crate::proto::upload_request::Part;
use crate::proto::watch_request::From;
use crate::proto::watch_response::Event;
use crate::proto::{
    CreateRoomRequest, Credentials, DownloadRequest, File, HistoryRequest, ListRoomsRequest, LogOutRequest,
    SendRequest, UploadRequest, WatchRequest, WatchResponse,
};
use crate::server::Server;

/// A server, and a client logged in as ada.
struct Chat {
    server: Server,
    channel: Channel,
    client: ChatClient<InterceptedChannel>,
    data: tempfile::TempDir,
}

impl Chat {
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), 0);
        let channel = connect(data.path(), server.port).await;
        let session =
            AccountsClient::new(channel.clone()).register(credentials("ada", "correct horse")).await;
        let token = session.unwrap().into_inner().token;
        let token = format!("Bearer {token}").parse().unwrap();
        let client = with_token(&channel, token);
        Self { server, channel, client, data }
    }

    async fn say(&self, id: u8, room: &str, body: SentBody) -> Result<u64, Status> {
        let message = SendRequest { room: room.to_owned(), id: vec![id; 16], body: Some(body) };
        Ok(self.client.send(message).await?.into_inner().number)
    }

    /// Uploads a file and returns the sizes that the server reported until it was stored.
    async fn upload(&self, parts: Vec<Part>) -> Result<Vec<u64>, Status> {
        let parts = parts.into_iter().map(|part| UploadRequest { part: Some(part) }).collect::<Vec<_>>();
        let mut responses = self.client.upload(Request::new(tokio_stream::iter(parts))).await?.into_inner();
        let mut received = Vec::new();
        while let Some(response) = responses.message().await? {
            received.push(response.received);
        }
        Ok(received)
    }

    /// Registers another user on another connection.
    async fn other(&self, name: &str) -> ChatClient<InterceptedChannel> {
        let channel = connect(self.data.path(), self.server.port).await;
        let session =
            AccountsClient::new(channel.clone()).register(credentials(name, "battery staple")).await;
        let token = session.unwrap().into_inner().token;
        with_token(&channel, format!("Bearer {token}").parse().unwrap())
    }
}

/// Watches the lobby from its start.
async fn watch(client: &ChatClient<InterceptedChannel>) -> Streaming<WatchResponse> {
    watch_from(client, From::After(0)).await
}

/// Times out after a minute, so that a missing event fails the test.
async fn watch_from(client: &ChatClient<InterceptedChannel>, from: From) -> Streaming<WatchResponse> {
    let mut request = Request::new(WatchRequest { room: "lobby".to_owned(), from: Some(from) });
    request.set_timeout(Duration::from_secs(60));
    client.watch(request).await.unwrap().into_inner()
}

/// Waits until exactly these users are present.
async fn wait_for_present(events: &mut Streaming<WatchResponse>, names: &[&str]) {
    loop {
        match events.message().await.unwrap().unwrap().event {
            Some(Event::Present(present)) if present.names == names => break,
            _ => {}
        }
    }
}

async fn connect(data: &Path, port: u16) -> Channel {
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_file(data.join("ca.pem")));
    Channel::builder(format!("localhost:{port}")).tls(tls).connect().await.unwrap()
}

fn with_token(channel: &Channel, token: MetadataValue<Ascii>) -> ChatClient<InterceptedChannel> {
    ChatClient::with_interceptor(channel.clone(), move |mut request: Request<()>| {
        request.metadata_mut().insert("authorization", token.clone());
        Ok(request)
    })
}

fn credentials(name: &str, password: &str) -> Credentials {
    Credentials { name: name.to_owned(), password: password.to_owned() }
}

fn text(text: &str) -> SentBody {
    SentBody::Text(text.to_owned())
}

#[track_caller]
fn check<T: std::fmt::Debug>(outcome: Result<T, Status>, code: Code, says: &str) {
    let status = outcome.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(says), "{status:?}");
}

#[tokio::test]
async fn invalid_accounts_are_rejected() {
    let chat = Chat::start().await;
    let accounts = AccountsClient::new(chat.channel.clone());
    let register = async |name, password| accounts.register(credentials(name, password)).await;
    let log_in = async |name, password| accounts.log_in(credentials(name, password)).await;
    check(register("ADA", "correct horse").await, Code::AlreadyExists, "the name ADA is taken");
    check(register("two words", "correct horse").await, Code::InvalidArgument, "letters a-z");
    check(register("bob", "short").await, Code::InvalidArgument, "8 to 128 bytes; this has 5");
    check(log_in("ada", "wrong horse").await, Code::Unauthenticated, "the name or the password is wrong");
    check(
        log_in("nobody", "correct horse").await,
        Code::Unauthenticated,
        "the name or the password is wrong",
    );
    assert_eq!(log_in("ADA", "correct horse").await.unwrap().into_inner().name, "ada");
}

#[tokio::test]
async fn calls_require_a_session() {
    let chat = Chat::start().await;
    let without = ChatClient::new(chat.channel.clone());
    check(without.list_rooms(ListRoomsRequest {}).await, Code::Unauthenticated, "log in first");
    let wrong = with_token(&chat.channel, "Bearer 1234".parse().unwrap());
    check(wrong.list_rooms(ListRoomsRequest {}).await, Code::Unauthenticated, "log in again");
    let rooms = chat.client.list_rooms(ListRoomsRequest {}).await.unwrap().into_inner().rooms;
    assert_eq!(rooms.iter().map(|room| room.name.as_str()).collect::<Vec<_>>(), ["lobby"]);
    chat.client.log_out(LogOutRequest {}).await.unwrap();
    let asked = chat.client.list_rooms(ListRoomsRequest {}).await;
    check(asked, Code::Unauthenticated, "log in again");
}

#[tokio::test]
async fn invalid_rooms_and_messages_are_rejected() {
    let chat = Chat::start().await;
    let create =
        async |name: &str| chat.client.create_room(CreateRoomRequest { name: name.to_owned() }).await;
    check(create("Lobby").await, Code::AlreadyExists, "there is a room Lobby already");
    check(create("").await, Code::InvalidArgument, "the name of a room");
    create("den").await.unwrap();

    check(chat.say(1, "nowhere", text("hello")).await, Code::NotFound, "there is no room \"nowhere\"");
    check(chat.say(1, "den", text(" ")).await, Code::InvalidArgument, "the message is empty");
    check(chat.say(1, "den", text(&"x".repeat(4001))).await, Code::InvalidArgument, "this has 4001");
    check(chat.say(1, "den", text("\x1b[2J")).await, Code::InvalidArgument, "control characters");
    let file = File { hash: vec![1; 32], name: "a.txt".to_owned(), size: 3 };
    check(chat.say(1, "den", SentBody::File(file)).await, Code::FailedPrecondition, "upload it first");
    let send = SendRequest { room: "den".to_owned(), id: vec![1; 15], body: Some(text("hello")) };
    check(chat.client.send(send).await, Code::InvalidArgument, "an id has 16 bytes; this has 15");
    assert_eq!(chat.say(1, "den", text("hello")).await.unwrap(), 1);
    assert_eq!(chat.say(1, "den", text("hello")).await.unwrap(), 1, "sent again");
    check(chat.say(1, "lobby", text("hello")).await, Code::AlreadyExists, "the id is another message's");

    let watch =
        async |room: &str, from| chat.client.watch(WatchRequest { room: room.to_owned(), from }).await;
    check(watch("nowhere", Some(From::After(0))).await.map(drop), Code::NotFound, "there is no room");
    check(watch("den", Some(From::After(2))).await.map(drop), Code::OutOfRange, "den has 1 messages");
    check(watch("den", None).await.map(drop), Code::InvalidArgument, "say after which number");
}

#[tokio::test]
async fn watch_starts_at_the_requested_message() {
    let chat = Chat::start().await;
    for id in 1..=250_u8 {
        chat.say(id, "lobby", text(&id.to_string())).await.unwrap();
    }
    for (from, first) in [(From::After(0), 1), (From::After(249), 250), (From::Latest(3), 248)] {
        let mut events = watch_from(&chat.client, from).await;
        let mut numbers = Vec::new();
        loop {
            match events.message().await.unwrap().unwrap().event.unwrap() {
                Event::Message(message) => numbers.push(message.number),
                Event::CaughtUp(caught_up) => {
                    assert_eq!(caught_up.last, 250);
                    break;
                }
                Event::Present(present) => panic!("{present:?}"),
            }
        }
        assert_eq!(numbers, (first..=250).collect::<Vec<_>>());
        let Some(Event::Present(present)) = events.message().await.unwrap().unwrap().event else { panic!() };
        assert_eq!(present.names, ["ada"]);
    }
    let history = HistoryRequest { room: "lobby".to_owned(), before: 11, limit: 3 };
    let history = chat.client.history(history).await.unwrap().into_inner().messages;
    let texts: Vec<_> = history.into_iter().map(|message| message.body.unwrap()).collect();
    assert_eq!(texts, ["8", "9", "10"].map(|text| Body::Text(text.to_owned())));
}

#[tokio::test]
async fn files_are_limited() {
    let chat = Chat::start().await;
    let file = |name: &str, size| File { hash: Sha256::digest("abc").to_vec(), name: name.to_owned(), size };
    let large = chat.upload(vec![Part::Head(file("large", 50 * 1024 * 1024 + 1))]).await;
    check(large, Code::InvalidArgument, "large has 52428801 bytes; a file may have 52428800 (50 MiB)");
    let short = chat.upload(vec![Part::Head(file("short", 3)), Part::Chunk(b"ab".to_vec())]).await;
    check(short, Code::InvalidArgument, "short was to have 3 bytes, and 2 came");
    let other = chat.upload(vec![Part::Head(file("other", 3)), Part::Chunk(b"abd".to_vec())]).await;
    check(other, Code::InvalidArgument, "the SHA-256 of what came is not other's");

    let file = file("a.txt", 3);
    let sent = chat.upload(vec![Part::Head(file.clone()), Part::Chunk(b"abc".to_vec())]).await;
    assert_eq!(sent.unwrap(), [0]);
    assert_eq!(chat.upload(vec![Part::Head(file.clone())]).await.unwrap(), [3], "it is there");
    assert_eq!(chat.say(1, "lobby", SentBody::File(file)).await.unwrap(), 1);
    assert_eq!(chat.say(2, "lobby", text("no file")).await.unwrap(), 2);
    let download = async |number, offset| {
        let download = DownloadRequest { room: "lobby".to_owned(), number, offset };
        let mut pieces = chat.client.download(download).await?.into_inner();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.message().await? {
            bytes.extend(piece.chunk);
        }
        Ok(bytes)
    };
    assert_eq!(download(1, 0).await.unwrap(), b"abc");
    assert_eq!(download(1, 2).await.unwrap(), b"c");
    check(download(1, 4).await, Code::OutOfRange, "a.txt has 3 bytes");
    check(download(2, 0).await, Code::FailedPrecondition, "message 2 of lobby carries no file");
    check(download(3, 0).await, Code::NotFound, "there is no message 3 in lobby");
}

#[tokio::test]
async fn leaving_user_is_removed_from_presence() {
    let chat = Chat::start().await;
    let bob = chat.other("bob").await;
    let mut events = watch(&chat.client).await;
    wait_for_present(&mut events, &["ada"]).await;
    let of_bob = watch(&bob).await;
    wait_for_present(&mut events, &["ada", "bob"]).await;
    drop(of_bob);
    wait_for_present(&mut events, &["ada"]).await;
}

#[tokio::test]
async fn watch_ends_with_its_session() {
    let chat = Chat::start().await;
    let bob = chat.other("bob").await;
    let (mut of_ada, mut of_bob) = (watch(&chat.client).await, watch(&bob).await);
    wait_for_present(&mut of_bob, &["ada", "bob"]).await;
    chat.client.log_out(LogOutRequest {}).await.unwrap();
    let status = loop {
        match of_ada.message().await {
            Ok(event) => assert!(event.is_some(), "it ended without a reason"),
            Err(status) => break status,
        }
    };
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unauthenticated, "the session is over; log in again")
    );
    wait_for_present(&mut of_bob, &["bob"]).await;
}

/// Messages that a slow client does not read stay in the database, and none is lost.
#[tokio::test]
async fn slow_watcher_does_not_block_others() {
    const COUNT: u8 = 250;
    let chat = Chat::start().await;
    let (slow, quick) = (chat.other("slow").await, chat.other("quick").await);
    let (mut of_slow, mut of_quick) = (watch(&slow).await, watch(&quick).await);
    let long = "x".repeat(4_000);
    for id in 0..COUNT {
        chat.say(id, "lobby", text(&long)).await.unwrap();
    }
    for events in [&mut of_quick, &mut of_slow] {
        let mut numbers = Vec::new();
        while numbers.len() < usize::from(COUNT) {
            if let Some(Event::Message(message)) = events.message().await.unwrap().unwrap().event {
                numbers.push(message.number);
            }
        }
        assert_eq!(numbers, (1..=u64::from(COUNT)).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn health_and_reflection_are_served() {
    let chat = Chat::start().await;
    for service in ["", "chat.v1.Accounts", "chat.v1.Chat"] {
        assert_eq!(health::check(&chat.channel, service).await.unwrap(), ServingStatus::Serving, "{service}");
    }
    let reflection_request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let client = ServerReflectionClient::new(chat.channel.clone());
    let mut responses =
        client.server_reflection_info(tokio_stream::once(reflection_request)).await.unwrap().into_inner();
    let response = responses.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(listed)) = response else { panic!("{response:?}") };
    let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&"chat.v1.Chat") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
}

#[tokio::test]
async fn server_uses_tls_and_private_files() {
    let chat = Chat::start().await;
    let plain = Channel::builder(format!("localhost:{}", chat.server.port)).connect().await;
    assert!(plain.unwrap_err().to_string().contains("TLS"));
    for (name, mode) in
        [("server.key", 0o600), ("chat.sqlite", 0o600), ("chat.sqlite-wal", 0o600), ("files", 0o700)]
    {
        let metadata = fs::metadata(chat.data.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
}
