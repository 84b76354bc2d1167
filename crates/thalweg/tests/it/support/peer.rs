//! A connection's end that the test plays frame by frame, for misbehaving peers.

use std::time::Duration;

use thalweg::{Channel, KeepalivePolicy, channel::ChannelBuilder};
use thalweg_engine::http2::frame::Setting;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

pub(crate) use self::scripted::{
    Frame, OK, OK_HEADERS as HEAD, PIPE, Peer, REQUEST, compressed_envelope, envelope,
};

#[path = "../../../../engine/tests/it/support/peer.rs"]
mod scripted;

/// Returns a builder of a channel whose connections are pipes, and the pipes' other ends.
pub(crate) fn channel_to_test() -> (ChannelBuilder, mpsc::UnboundedReceiver<DuplexStream>) {
    let (connections, accepted) = mpsc::unbounded_channel();
    let builder = Channel::builder("memory:1").connector(move || {
        let (near, far) = duplex(PIPE);
        let outcome = connections.send(far).map_err(|_| std::io::ErrorKind::ConnectionRefused.into());
        async move { outcome.map(|()| near) }
    });
    (builder, accepted)
}

/// Connects a channel; the test plays the server's end.
pub(crate) async fn connected(
    settings: &[Setting],
) -> (Channel, Peer, mpsc::UnboundedReceiver<DuplexStream>) {
    let (builder, accepted) = channel_to_test();
    connected_by(builder, accepted, settings).await
}

/// Connects like [`connected`], with other settings of the channel.
pub(crate) async fn connected_by(
    builder: ChannelBuilder,
    mut accepted: mpsc::UnboundedReceiver<DuplexStream>,
    settings: &[Setting],
) -> (Channel, Peer, mpsc::UnboundedReceiver<DuplexStream>) {
    let (channel, (peer, accepted)) = tokio::join!(builder.connect(), async {
        let io = accepted.recv().await.expect("it connects");
        (Peer::server(io, settings).await, accepted)
    });
    (channel.expect("connected"), peer, accepted)
}

/// Connects a client's end, played by the test, to a server with `service`.
pub(crate) async fn client_of<S: thalweg::server::Service>(service: S) -> Peer {
    let (near, far) = duplex(PIPE);
    // Tests send PINGs to learn the server's progress.
    let any_pings = KeepalivePolicy::every(Duration::ZERO).without_calls(true);
    let server = thalweg::Server::builder().keepalive_policy(any_pings);
    tokio::spawn(server.add_service(service).serve_connection(far));
    Peer::client(near).await
}
