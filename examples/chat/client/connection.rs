//! The channel to the server, and another one when it is lost.

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
/// A server that is gone without a word is found by it.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// A person waits: tries follow each other faster than a channel's own, and with a new channel each. Nobody else is
/// bothered by it but the server, which refuses at once where it is not there.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The connection that there is at the moment, if there is one.
#[derive(Clone)]
pub(crate) struct Connection {
    current: watch::Receiver<Option<Connected>>,
    lost: mpsc::UnboundedSender<u64>,
}

#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) channel: Channel,
    /// Counts the connections that there were: a call that fails on an old one says nothing of the next.
    count: u64,
}

impl Connection {
    /// Begins to connect, and tells how that goes for as long as somebody listens.
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

    /// Makes a call that may be made twice until its outcome is the server's, however often the connection is lost.
    pub(crate) async fn until_answered<T, F>(&self, mut call: impl FnMut(Channel) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        loop {
            match self.once(&mut call).await {
                // A server that is there and refuses is not asked without a pause.
                Err(status) if is_lost(&status) => sleep(PAUSE_MIN).await,
                outcome => return outcome,
            }
        }
    }

    /// Makes a call when there is a connection; its loss is made known.
    pub(crate) async fn once<T, F>(&self, call: impl FnOnce(Channel) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let connected = self.connected().await?;
        let outcome = call(connected.channel.clone()).await;
        if let Err(status) = &outcome
            && is_lost(status)
        {
            // An error: the program ends.
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

/// Whether a call failed for want of a connection, and may do better on the next.
pub(crate) fn is_lost(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
}

/// How the server is reached.
fn channel(options: &Options) -> Result<ChannelBuilder, Box<dyn Error>> {
    let mut builder = Channel::builder(&options.target)
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalive(Keepalive::every(KEEPALIVE))
        .user_agent(concat!("chat-client/", env!("CARGO_PKG_VERSION")))
        // One that writes and reads at the pace of a person.
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
    // What is wrong with the target or the certificates is wrong at once.
    builder.clone().connect_lazy()?;
    Ok(builder)
}
