//! The chat server: `cargo run --release --example chat-server`. Keeps everything in one folder, `chat-data`.

mod accounts;
mod certificate;
mod chat;
mod files;
mod hex;
mod names;
mod options;
mod partial;
mod passwords;
mod proto;
mod rooms;
mod sessions;
mod store;
mod uploads;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use thalweg::{Keepalive, Server};
use thalweg_services::health::HealthReporter;
use thalweg_services::reflection::Reflection;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::interval;

use accounts::Accounts;
use chat::Chat;
use files::Files;
use options::Options;
use passwords::Passwords;
use proto::accounts_server::AccountsServer;
use proto::chat_server::ChatServer;
use rooms::Rooms;
use sessions::Sessions;
use store::Store;
use uploads::Uploads;

/// Detects clients that are gone without closing the connection, so that they are not shown as present.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Interval between removals of unused files.
const CLEANING: Duration = Duration::from_secs(60 * 60);
/// Time for calls in flight when the server stops.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(Store::open(&options.data)?);
    let files = Arc::new(Files::open(&options.data, &store)?);
    let uploads = Arc::new(Uploads::open(files.clone(), options.quota())?);
    tokio::spawn(clean(files.clone(), uploads.clone()));
    let sessions = Arc::new(Sessions::load(&store)?);
    let (stop, stopping) = watch::channel(false);
    let rooms = Arc::new(Rooms::new(stopping));

    let accounts =
        Accounts { store: store.clone(), sessions: sessions.clone(), passwords: Passwords::new()? };
    let chat = Chat { store, files, uploads, rooms, sessions: sessions.clone() };
    let chat = ChatServer::with_interceptor(chat, move |request| sessions.authorize(request));
    // Health checks report serving, and not serving once the server stops.
    let health = HealthReporter::new();
    health.set_serving::<AccountsServer<Accounts>>();
    health.set_serving::<ChatServer<Chat>>();
    let reflection =
        Reflection::builder().descriptors(thalweg::include_file_descriptor_set!("chat")).build()?;
    let mut server = Server::builder();
    if !options.plaintext {
        server = server.tls(options.identity()?);
    }
    let server = server
        .add_service(health.service())
        .add_service(reflection)
        .add_service(AccountsServer::new(accounts))
        .add_service(chat)
        .keepalive(Keepalive::every(KEEPALIVE).without_calls(true))
        .shutdown_grace(GRACE)
        .bind(&options.listen)
        .await?;
    for address in server.local_addresses() {
        println!("listening on {address}");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    server
        .serve_until(async move {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => (),
                _ = terminate.recv() => (),
            }
            // Watches never end on their own.
            stop.send_replace(true);
        })
        .await?;
    Ok(())
}

async fn clean(files: Arc<Files>, uploads: Arc<Uploads>) {
    let mut hours = interval(CLEANING);
    loop {
        hours.tick().await;
        let (files, uploads) = (files.clone(), uploads.clone());
        let cleaned = spawn_blocking(move || files.clean().and_then(|()| Ok(uploads.clean()?))).await;
        if let Ok(Err(error)) = cleaned {
            eprintln!("chat-server: cannot remove old files: {error}");
        }
    }
}
