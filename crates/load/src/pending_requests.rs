//! Requests of a bidi stream without a response.

use std::collections::VecDeque;

use crate::traffic::Replies;

/// Maximum batches with a recorded time. Beyond it every second one is dropped, and its requests count with the
/// previous batch. So memory is bounded even for a stream of days whose server rarely responds.
const BATCHES_MAX: usize = 1024;

/// Due times of requests without a response. Requests and responses are matched by number.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    /// Number of the first request, and time, of each batch.
    batches: VecDeque<(u64, u64)>,
    /// Minimum number of requests between recorded batches.
    spacing: u64,
    responded: u64,
}

impl PendingRequests {
    /// Adds a batch of requests that starts with number `first` and was due at `at_ns`.
    pub(crate) fn send(&mut self, first: u64, at_ns: u64) {
        let Self { batches, spacing, responded } = self;
        if *responded == first {
            // All have a response.
            batches.clear();
            *spacing = 0;
        }
        if batches.back().is_some_and(|(last, _)| first - last < *spacing) {
            return;
        }
        if batches.len() == BATCHES_MAX {
            let mut is_kept = false;
            batches.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            *spacing = 2 * (first - batches[0].0) / BATCHES_MAX as u64;
        }
        batches.push_back((first, at_ns));
    }

    /// Records the response times of all requests below `upto`, which must have been sent.
    pub(crate) fn record_responses(&mut self, upto: u64, now_ns: u64, replies: &mut Vec<Replies>) {
        while self.responded < upto {
            let Some(&(_, at_ns)) = self.batches.front() else { return };
            let next = self.batches.get(1).map_or(u64::MAX, |(first, _)| *first);
            let end = next.min(upto);
            if end > self.responded {
                let (took_ns, count) = (now_ns.saturating_sub(at_ns), end - self.responded);
                replies.push(Replies { took_ns, count });
                self.responded = end;
            }
            if end == next {
                self.batches.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responded(pending: &mut PendingRequests, upto: u64, now_ns: u64) -> Vec<(u64, u64)> {
        let mut replies = Vec::new();
        pending.record_responses(upto, now_ns, &mut replies);
        replies.iter().map(|it| (it.took_ns, it.count)).collect()
    }

    #[test]
    fn responses_match_requests_by_number() {
        let mut pending = PendingRequests::default();
        assert_eq!(responded(&mut pending, 0, 7), []);
        for (first, at_ns) in [(0, 100), (4, 140), (5, 150)] {
            pending.send(first, at_ns);
        }
        assert_eq!(responded(&mut pending, 1, 200), [(100, 1)]);
        assert_eq!(responded(&mut pending, 1, 200), []);
        assert_eq!(responded(&mut pending, 7, 300), [(200, 3), (160, 1), (150, 2)]);
        pending.send(7, 400);
        assert_eq!(responded(&mut pending, 8, 410), [(10, 1)]);
    }

    #[test]
    fn excess_batches_are_sampled() {
        const COUNT: u64 = 1_000_000;
        let mut pending = PendingRequests::default();
        for number in 0..COUNT {
            pending.send(number, number);
            assert!(pending.batches.len() <= BATCHES_MAX);
        }
        assert!(pending.batches.len() >= BATCHES_MAX / 4, "{}", pending.batches.len());
        let replies = responded(&mut pending, COUNT, COUNT);
        assert_eq!(replies.iter().map(|(_, count)| count).sum::<u64>(), COUNT);
        // Each has the time of a slightly earlier request.
        let mut first = 0;
        for (took_ns, count) in replies {
            assert_eq!(took_ns, COUNT - first);
            assert!(count <= 4 * COUNT / BATCHES_MAX as u64, "{count}");
            first += count;
        }
        // Later batches are all recorded again.
        pending.send(COUNT, 7);
        pending.send(COUNT + 1, 8);
        assert_eq!(responded(&mut pending, COUNT + 2, 10), [(3, 1), (2, 1)]);
    }
}
