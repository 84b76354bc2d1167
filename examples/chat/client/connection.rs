//! The channel to the server, replaced when it is lost.

use std::error::Error;
use std::time::Duration;

use thalweg::channel::ChannelBuilder;
use thalweg::tls::{Certificate, ClientTlsConfig};
use thalweg::{Channel, Code, Keepalive, Status};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::events::{Event, Link};
use crate::options::Options;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Detects a server that is gone without closing the connection.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Shorter than a channel's own back-off, and with a new channel per try, because a person is waiting. Only the server
/// is affected, and it refuses at once if it is down.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The current connection, if any.
#[derive(Clone)]
pub(crate) struct Connection {
    current: watch::Receiver<Option<Connected>>,
    lost: mpsc::UnboundedSender<u64>,
}

#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) channel: Channel,
    /// Number of this connection. A failed call on an older one says nothing about the current one.
    count: u64,
}

impl Connection {
    /// Starts connecting, and reports the progress until `events` is closed.
    pub(crate) fn start(options: &Options, events: mpsc::Sender<Event>) -> Result<Self, Box<dyn Error>> {
        let builder = channel(options)?;
        let (sender, current) = watch::channel(None);
        let (lost, mut losses) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut count = 0;
            let mut pause = PAUSE_MIN;
            let _ = events.send(Event::Link(Link::Connecting)).await;
            loop {
                match builder.clone().connect().await {
                    Ok(channel) => {
                        count += 1;
                        pause = PAUSE_MIN;
                        sender.send_replace(Some(Connected { channel, count }));
                        let _ = events.send(Event::Link(Link::Connected)).await;
                        loop {
                            match losses.recv().await {
                                Some(lost) if lost < count => {}
                                Some(_) => break,
                                None => return,
                            }
                        }
                        sender.send_replace(None);
                        let _ = events.send(Event::Link(Link::Connecting)).await;
                    }
                    Err(error) => {
                        if events.send(Event::Link(Link::Waiting(error.to_string()))).await.is_err() {
                            return;
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        });
        Ok(Self { current, lost })
    }

    /// Repeats an idempotent call until the server has responded, across lost connections.
    pub(crate) async fn retry_until_response<T, F>(
        &self,
        mut call: impl FnMut(Channel) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        loop {
            match self.call_once(&mut call).await {
                // Pauses between tries while a reachable server refuses.
                Err(status) if is_connection_lost(&status) => sleep(PAUSE_MIN).await,
                outcome => return outcome,
            }
        }
    }

    /// Waits for a connection and makes a call; reports a lost connection.
    pub(crate) async fn call_once<T, F>(&self, call: impl FnOnce(Channel) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let connected = self.connected().await?;
        let outcome = call(connected.channel.clone()).await;
        if let Err(status) = &outcome
            && is_connection_lost(status)
        {
            // Fails when the program ends.
            let _ = self.lost.send(connected.count);
        }
        outcome
    }

    async fn connected(&self) -> Result<Connected, Status> {
        let mut current = self.current.clone();
        let connected = current.wait_for(Option::is_some).await.ok().and_then(|connected| connected.clone());
        connected.ok_or_else(|| Status::cancelled("the program ends"))
    }
}

/// Returns whether a call failed because of its connection and may succeed on the next one.
pub(crate) fn is_connection_lost(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
}

fn channel(options: &Options) -> Result<ChannelBuilder, Box<dyn Error>> {
    let mut builder = Channel::builder(&options.target)
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalive(Keepalive::every(KEEPALIVE))
        .user_agent(concat!("chat-client/", env!("CARGO_PKG_VERSION")))
        // One connection is enough for a person's pace.
        .lanes(1);
    if !options.plaintext {
        if !options.system_roots && !options.ca.exists() {
            let ca = options.ca.display();
            return Err(format!(
                "there is no certificate {ca}; start chat-server in this folder first, or name its ca.pem with --ca"
            )
            .into());
        }
        let tls = ClientTlsConfig::new();
        builder = builder.tls(if options.system_roots {
            tls
        } else {
            tls.ca_certificate(Certificate::from_file(&options.ca))
        });
    }
    // Reports an invalid target or certificate immediately.
    builder.clone().connect_lazy()?;
    Ok(builder)
}
