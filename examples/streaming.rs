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
//! the client dropped the responses
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

struct EchoService {
    /// Represents the server's log.
    log: UnboundedSender<String>,
}

impl Echo for EchoService {
    type ExchangeStream = ReceiverStream<Result<Line, Status>>;

    /// Responds from a separate task, which could also await other sources. If each response follows from one request,
    /// `map` the request stream instead, as in `routeguide-server`.
    async fn exchange(
        &self,
        request: Request<Streaming<Line>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let (mut lines, log) = (request.into_inner(), self.log.clone());
        // A small capacity, so that the task and thus the client wait while responses are not read.
        let (responses, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let end = loop {
                match lines.message().await {
                    Ok(Some(line)) => {
                        let text = format!("{}, back again", line.text);
                        // Fails if the client no longer reads responses; the next `message` returns the reason.
                        let _ = responses.send(Ok(Line { text })).await;
                    }
                    Ok(None) => break "the client has sent its last line".to_owned(),
                    Err(status) => break format!("the client went away: {:?}", status.code()),
                }
            };
            let _ = log.send(end);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    type RepeatStream = RepeatedLine;

    async fn repeat(&self, request: Request<Line>) -> Result<Response<RepeatedLine>, Status> {
        let repeat_stream = RepeatedLine { line: request.into_inner(), log: self.log.clone() };
        Ok(Response::new(repeat_stream))
    }
}

/// An endless stream. It is polled when there is room to send, and dropped when the call ends.
struct RepeatedLine {
    line: Line,
    log: UnboundedSender<String>,
}

impl Stream for RepeatedLine {
    type Item = Result<Line, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(self.line.clone())))
    }
}

impl Drop for RepeatedLine {
    fn drop(&mut self) {
        let _ = self.log.send("the client dropped the responses".to_owned());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (log, mut log_lines) = mpsc::unbounded_channel();
    let server = Server::builder().add_service(EchoServer::new(EchoService { log }));
    let server = server.bind(&["127.0.0.1:0".parse()?]).await?;
    let channel = Channel::builder(server.local_addresses()[0].to_string()).connect_lazy()?;
    tokio::spawn(server.serve());
    let echo = EchoClient::new(channel);
    let line = |text: &str| Line { text: text.to_owned() };

    // Requests that depend on responses are sent through a channel.
    let (lines, receiver) = mpsc::channel(4);
    let mut responses = echo.exchange(ReceiverStream::new(receiver)).await?.into_inner();
    for text in ["one", "two"] {
        lines.send(line(text)).await?;
        println!("{}", responses.message().await?.ok_or("an answer is missing")?.text);
    }
    // Ends the requests; in response the server ends its own stream.
    drop(lines);
    assert!(responses.message().await?.is_none());
    println!("{}", log_lines.recv().await.ok_or("the server has gone")?);

    let mut repeat_stream = echo.repeat(line("again and again")).await?.into_inner();
    for _ in 0..2 {
        println!("{}", repeat_stream.message().await?.ok_or("it ended")?.text);
    }
    // Dropping a stream before its end cancels the call; the server then drops its own stream.
    drop(repeat_stream);
    println!("{}", log_lines.recv().await.ok_or("the server has gone")?);

    let (lines, receiver) = mpsc::channel(4);
    let mut responses = echo.exchange(ReceiverStream::new(receiver)).await?.into_inner();
    lines.send(line("three")).await?;
    responses.message().await?;
    // Ending the client's process or connection has the same effect: the task's next `message` returns an error.
    drop(responses);
    println!("{}", log_lines.recv().await.ok_or("the server has gone")?);
    Ok(())
}
