//! Connections of a load, and the first call on them.

use std::error::Error;
use std::io;
use std::time::Duration;

use thalweg::channel::{Address, ChannelBuilder, ConnectError, Endpoint, EndpointList, Lanes, ProxyConfig};
use thalweg::{Channel, Status};
use thalweg_measure::code::code_name;
use thalweg_measure::target;
use tokio::time::Instant;

use crate::record::LaneRule;

/// Maximum connections of one channel. For more, several channels are used.
const OF_A_CHANNEL_MAX: u32 = 1024;

/// Time for the other servers to connect once one is connected. One that drops packets must not delay the run.
const ALL_PATIENCE: Duration = Duration::from_secs(1);

/// Reason why a server does not accept calls.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The target is invalid.
    #[error(transparent)]
    Target(ConnectError),
    /// No server listens there.
    #[error(transparent)]
    Connect(ConnectError),
    /// Something listens there, but does not speak HTTP/2.
    #[error("{target} did not respond as an HTTP/2 server within {patience:?}")]
    Silent {
        /// The server.
        target: String,
        /// The time limit.
        patience: Duration,
    },
    /// The first call, made before anything is measured, failed.
    #[error("{target}: the first call, {method}, ended with {}", described(.status))]
    FirstCall {
        /// The server.
        target: String,
        /// `package.Service/Method`.
        method: String,
        /// Status of the call.
        status: Status,
    },
}

impl StartError {
    /// Returns whether the target or a setting is invalid. A file that cannot be read is not.
    pub fn is_misuse(&self) -> bool {
        let is_io = |error: &ConnectError| error.source().is_some_and(<dyn Error>::is::<io::Error>);
        matches!(self, Self::Target(error) if !is_io(error))
    }
}

/// Returns a builder for a channel to `target`, which may also be a list of [servers](target::servers). It uses no
/// proxy of the environment, on which figures must not depend.
pub fn channel_builder(target: &str) -> ChannelBuilder {
    let servers = target::servers(target);
    if servers.len() < 2 {
        return Channel::builder(target).proxy(ProxyConfig::Off);
    }
    let address =
        |server: &&str| server.parse().map_or_else(|_| Address::Name((*server).to_owned()), Address::Tcp);
    let endpoints = servers.iter().map(address).map(Endpoint::new);
    // The first one is the default `:authority`, but messages are about any of them.
    Channel::builder(servers[0]).resolver(EndpointList::new(endpoints)).name(target)
}

/// Returns the lanes of a channel with at most this many connections.
pub(crate) fn lanes(rule: LaneRule, connections: u32) -> Lanes {
    match rule {
        LaneRule::Fixed => Lanes::fixed(connections as usize),
        LaneRule::Adaptive => Lanes::adaptive(),
        LaneRule::PerCall => Lanes::fixed(1),
    }
}

/// Returns channels that have this many connections in total: one, or several if one cannot have all.
pub(crate) async fn connect_all(
    builder: &ChannelBuilder,
    target: &str,
    rule: LaneRule,
    connections: u32,
    patience: Duration,
) -> Result<Vec<Channel>, StartError> {
    let connections = if rule == LaneRule::Fixed { connections } else { 1 };
    let mut channels = Vec::new();
    for share in shares(connections) {
        let builder = builder.clone().lanes(lanes(rule, share));
        let channel = connect(builder, target, patience).await?;
        wait_for_all(&channel, patience).await;
        channels.push(channel);
    }
    Ok(channels)
}

/// Waits while servers of a balanced channel are connecting, so that all of them take part from the first call.
async fn wait_for_all(channel: &Channel, patience: Duration) {
    let until = Instant::now() + patience.min(ALL_PATIENCE);
    let connects = || channel.lanes().iter().any(|lane| lane.state == "CONNECTING");
    while connects() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Divides connections between channels: one channel, unless there are more than it can have.
fn shares(connections: u32) -> impl Iterator<Item = u32> {
    let channels = connections.div_ceil(OF_A_CHANNEL_MAX).max(1);
    (0..channels).map(move |index| connections / channels + u32::from(index < connections % channels))
}

pub(crate) async fn connect(
    builder: ChannelBuilder,
    target: &str,
    patience: Duration,
) -> Result<Channel, StartError> {
    match tokio::time::timeout(patience, builder.connect()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error @ ConnectError::Unavailable(_))) => Err(StartError::Connect(error)),
        Ok(Err(error)) => Err(StartError::Target(error)),
        Err(_) => Err(StartError::Silent { target: target.to_owned(), patience }),
    }
}

/// Waits for the first call, which calls `method`.
pub(crate) async fn first_call(
    target: &str,
    method: String,
    patience: Duration,
    call: impl Future<Output = Result<(), Status>>,
) -> Result<(), StartError> {
    let failed = |status| StartError::FirstCall { target: target.to_owned(), method, status };
    match tokio::time::timeout(patience, call).await {
        Ok(called) => called.map_err(failed),
        Err(_) => Err(failed(Status::deadline_exceeded(format!("no response within {patience:?}")))),
    }
}

/// `UNAVAILABLE: connection lost`
fn described(status: &Status) -> String {
    let name = code_name(status.code() as i32);
    if status.message().is_empty() { name.to_owned() } else { format!("{name}: {}", status.message()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_divided_evenly_between_channels() {
        let check = |connections: u32, expected: &[u32]| {
            assert_eq!(shares(connections).collect::<Vec<_>>(), expected, "{connections}");
        };
        check(1, &[1]);
        check(1024, &[1024]);
        check(1025, &[513, 512]);
        check(3000, &[1000, 1000, 1000]);
    }
}
