//! Serves and calls a service whose messages are buffa's.
//!
//! Requests and responses arrive as views: their strings borrow from the received bytes and are not copied.
//!
//! Run it with `cargo run -p thalweg-examples --example notes-buffa`. It prints:
//!
//! ```text
//! a rose: [("a", 3), ("is", 2), ("rose", 3)]
//! a rose is a rose is a rose
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use notes::notes_client::NotesClient;
use notes::notes_server::{Notes, NotesServer};
use notes::{Note, NoteView, WordCounts};
use thalweg::{Channel, Request, Response, Server, Status, Stream, Streaming, View};

#[allow(dead_code, unreachable_pub, unused_imports, clippy::all, clippy::pedantic, reason = "generated code")]
mod notes {
    thalweg::include_proto!("notes");
}

struct WordCounter;

impl Notes for WordCounter {
    async fn count_words(
        &self,
        request: Request<View<NoteView<'static>>>,
    ) -> Result<Response<WordCounts>, Status> {
        let note = request.get_ref().view();
        let mut counts = HashMap::<&str, u32>::new();
        for word in note.text.split_whitespace() {
            *counts.entry(word).or_default() += 1;
        }
        let counts = counts.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
        Ok(Response::new(WordCounts { title: note.title.to_owned(), counts, ..WordCounts::default() }))
    }

    type EchoStream = EchoStream;

    async fn echo(
        &self,
        request: Request<Streaming<View<NoteView<'static>>>>,
    ) -> Result<Response<EchoStream>, Status> {
        Ok(Response::new(EchoStream(request.into_inner())))
    }
}

/// The received notes, converted to owned messages.
struct EchoStream(Streaming<View<NoteView<'static>>>);

impl Stream for EchoStream {
    type Item = Result<Note, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let owned = |note: View<NoteView<'static>>| note.into_inner().to_owned_message();
        Pin::new(&mut self.0).poll_next(context).map(|item| item.map(|note| note.map(owned)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server =
        Server::builder().add_service(NotesServer::new(WordCounter)).bind(&["127.0.0.1:0".parse()?]).await?;
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());

    let client = NotesClient::new(Channel::builder(address).connect().await?);
    let note = Note { title: "a rose".into(), text: "a rose is a rose is a rose".into(), ..Note::default() };
    let response = client.count_words(note.clone()).await?.into_inner();
    let response = response.view();
    let mut counts: Vec<(&str, u32)> = response.counts.iter().map(|(word, count)| (*word, *count)).collect();
    counts.sort_unstable();
    println!("{}: {counts:?}", response.title);

    let mut echo_stream = client.echo(tokio_stream::once(note)).await?.into_inner();
    // Borrows the received bytes; a stream of `View`s would copy them once per message.
    while let Some(note) = echo_stream.next_view().await? {
        println!("{}", note.text);
    }
    Ok(())
}
