//! Attempts at calls beyond the first, by server: [`AttemptCounts`].

use std::sync::{Mutex, PoisonError};

use crate::snapshot::PeerAttempts;

/// An attempt at a call beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FurtherAttempt {
    Retry,
    TransparentRetry,
    Hedge,
}

/// Attempts at the calls of a channel beyond the first. Only calls that make one count here.
#[derive(Debug, Default)]
pub(crate) struct AttemptCounts(Mutex<Vec<PeerAttempts>>);

/// Maximum number of peers counted on their own; further ones count as unknown. A list of servers has at most as many.
const PEERS_MAX: usize = 1024;

impl AttemptCounts {
    /// Counts an attempt. `peer` is where the former attempt failed, or where a hedge is sent.
    #[cold]
    pub(crate) fn note(&self, peer: Option<&str>, attempt: FurtherAttempt) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = |peer: Option<&str>| all.iter().position(|known| known.peer.as_deref() == peer);
        let peer = if position(peer).is_none() && all.len() >= PEERS_MAX { None } else { peer };
        let at = position(peer).unwrap_or_else(|| {
            all.push(PeerAttempts { peer: peer.map(str::to_owned), ..PeerAttempts::default() });
            all.len() - 1
        });
        let PeerAttempts { peer: _, retries, transparent_retries, hedges } = &mut all[at];
        *match attempt {
            FurtherAttempt::Retry => retries,
            FurtherAttempt::TransparentRetry => transparent_retries,
            FurtherAttempt::Hedge => hedges,
        } += 1;
    }

    pub(super) fn snapshot(&self) -> Vec<PeerAttempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_count_by_peer_up_to_the_limit() {
        let counts = AttemptCounts::default();
        counts.note(Some("a"), FurtherAttempt::Retry);
        counts.note(Some("a"), FurtherAttempt::Hedge);
        counts.note(Some("a"), FurtherAttempt::TransparentRetry);
        counts.note(Some("a"), FurtherAttempt::Retry);
        let peer = Some("a".to_owned());
        let expected = PeerAttempts { peer, retries: 2, transparent_retries: 1, hedges: 1 };
        assert_eq!(counts.snapshot(), [expected]);
        for number in 0..2 * PEERS_MAX {
            counts.note(Some(&number.to_string()), FurtherAttempt::Hedge);
        }
        let all = counts.snapshot();
        assert_eq!(all.len(), PEERS_MAX + 1);
        assert_eq!(all[PEERS_MAX].peer, None);
        assert_eq!(all.iter().map(|peer| peer.hedges).sum::<u64>(), 1 + 2 * PEERS_MAX as u64);
    }
}
