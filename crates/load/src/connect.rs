//! Connections of a load, and the first call on them.

use std::time::Duration;

use thalweg::channel::{ChannelBuilder, ConnectError, Lanes};
use thalweg::{Channel, Status};
use thalweg_measure::code::code_name;

use crate::record::LaneRule;

/// Maximum connections of one channel. For more, several channels are used.
const OF_A_CHANNEL_MAX: u32 = 1024;

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
    /// Returns whether the target itself is invalid.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Target(_))
    }
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
        channels.push(connect(builder, target, patience).await?);
    }
    Ok(channels)
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
