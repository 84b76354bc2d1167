//! Division of a call into stages, by the timestamps of client and server.

use super::timestamps::ServerTimestamps;

/// Names of the stages, in order.
pub const STAGES: [&str; 7] =
    ["client-encode", "request", "decode", "handler", "encode", "response", "client-decode"];

/// Duration of each stage of a call in ns, in the order of [`STAGES`]. `None` if the server's stack does not show the
/// stage, which then is part of the adjacent transfer stage.
pub type Stages = [Option<u64>; 7];

/// Timestamps of a call on the client, in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientTimestamps {
    /// The request object is available.
    pub(super) began: i64,
    /// The request is encoded.
    pub(super) encoded: i64,
    /// All bytes of the response have arrived.
    pub(super) received: i64,
    /// The response is decoded.
    pub(super) ended: i64,
}

/// Divides a call into stages. Returns `None` if a stage would end before it begins: the two clocks differ.
pub(super) fn divide(client: ClientTimestamps, server: ServerTimestamps) -> Option<Stages> {
    let arrived = server.received.unwrap_or(server.decoded);
    let left = server.encoded.unwrap_or(server.handled);
    let took = |from: i64, to: i64| u64::try_from(to - from).ok();
    let seen = |moment: Option<i64>, stage: Option<u64>| moment.and(stage);
    let stages = [
        Some(took(client.began, client.encoded)?),
        Some(took(client.encoded, arrived)?),
        seen(server.received, Some(took(arrived, server.decoded)?)),
        Some(took(server.decoded, server.handled)?),
        seen(server.encoded, Some(took(server.handled, left)?)),
        Some(took(left, client.received)?),
        Some(took(client.received, client.ended)?),
    ];
    Some(stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: ClientTimestamps = ClientTimestamps { began: 100, encoded: 110, received: 190, ended: 199 };

    /// The stages must add up to the whole call, whichever timestamps the server reports.
    fn check(server: ServerTimestamps, expected: Option<Stages>) {
        let stages = divide(CLIENT, server);
        assert_eq!(stages, expected, "{server:?}");
        if let Some(stages) = stages {
            assert_eq!(stages.iter().flatten().sum::<u64>(), 99);
        }
    }

    #[test]
    fn stages_add_up_to_the_call() {
        let all = ServerTimestamps { received: Some(130), decoded: 135, handled: 142, encoded: Some(150) };
        check(all, Some([10, 20, 5, 7, 8, 40, 9].map(Some)));
        let handler = ServerTimestamps { received: None, encoded: None, ..all };
        check(handler, Some([Some(10), Some(25), None, Some(7), None, Some(48), Some(9)]));
    }

    #[test]
    fn inconsistent_clocks_are_rejected() {
        let before = ServerTimestamps { received: None, decoded: 90, handled: 91, encoded: None };
        check(before, None);
        let after = ServerTimestamps { received: None, decoded: 190, handled: 191, encoded: None };
        check(after, None);
    }
}
