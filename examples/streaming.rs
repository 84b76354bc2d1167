//! Streams in both directions, and shows how the server notices that its client goes away.
//!
//! Run it with `cargo run -p thalweg-examples --example streaming`. It prints:
//!
//! ```text
//! one, back again
//! two, back again
//! the client has sent its last line
//! again and again
//! again and again
//! nobody listens any more
//! the client went away: Cancelled
//! ```

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use echo::Line;
use echo::echo_client::EchoClient;
use echo::echo_server::{Echo, EchoServer};
use thalweg::{Channel, Request, Response, Server, Status, Stream, Streaming};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_stream::wrappers::ReceiverStream;

mod echo {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("echo");
}

struct Echoing {
    /// Represents the server's log.
    noticed: UnboundedSender<String>,
}

impl Echo for Echoing {
    type ExchangeStream = ReceiverStream<Result<Line, Status>>;

    /// Responds from a separate task, which could also await other sources. If each response follows from one request,
    /// `map` the request stream instead, as in `routeguide-server`.
    async fn exchange(
        &self,
        request: Request<Streaming<Line>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let (mut lines, noticed) = (request.into_inner(), self.noticed.clone());
        // A small capacity, so that the task and thus the client wait while responses are not read.
        let (answers, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let end = loop {
                match lines.message().await {
                    Ok(Some(line)) => {
                        let text = format!("{}, back again", line.text);
                        // Fails if the client no longer reads responses; the next `message` returns the reason.
                        let _ = answers.send(Ok(Line { text })).await;
                    }
                    Ok(None) => break "the client has sent its last line".to_owned(),
                    Err(status) => break format!("the client went away: {:?}", status.code()),
                }
            };
            let _ = noticed.send(end);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type RepeatStream = Repeated;

    async fn repeat(&self, request: Request<Line>) -> Result<Response<Repeated>, Status> {
        let repeated = Repeated { line: request.into_inner(), noticed: self.noticed.clone() };
        Ok(Response::new(repeated))
    }
}

/// An endless stream. It is polled when there is room to send, and dropped when the call ends.
struct Repeated {
    line: Line,
    noticed: UnboundedSender<String>,
}

impl Stream for Repeated {
    type Item = Result<Line, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(self.line.clone())))
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        let _ = self.noticed.send("nobody listens any more".to_owned());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (noticed, mut notices) = mpsc::unbounded_channel();
    let server = Server::builder().add_service(EchoServer::new(Echoing { noticed }));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let echo = EchoClient::new(channel);
    let line = |text: &str| Line { text: text.to_owned() };

    // Requests that depend on responses are sent through a channel.
    let (lines, receiver) = mpsc::channel(4);
    let mut answers = echo.exchange(ReceiverStream::new(receiver)).await?.into_inner();
    for text in ["one", "two"] {
        lines.send(line(text)).await?;
        println!("{}", answers.message().await?.ok_or("an answer is missing")?.text);
    }
    // Ends the requests; in response the server ends its own stream.
    drop(lines);
    assert!(answers.message().await?.is_none());
    println!("{}", notices.recv().await.ok_or("the server has gone")?);

    let mut repeated = echo.repeat(line("again and again")).await?.into_inner();
    for _ in 0..2 {
        println!("{}", repeated.message().await?.ok_or("it ended")?.text);
    }
    // Dropping a stream before its end cancels the call; the server then drops its own stream.
    drop(repeated);
    println!("{}", notices.recv().await.ok_or("the server has gone")?);

    let (lines, receiver) = mpsc::channel(4);
    let mut answers = echo.exchange(ReceiverStream::new(receiver)).await?.into_inner();
    lines.send(line("three")).await?;
    answers.message().await?;
    // Ending the client's process or connection has the same effect: the task's next `message` returns an error.
    drop(answers);
    println!("{}", notices.recv().await.ok_or("the server has gone")?);
    Ok(())
}
