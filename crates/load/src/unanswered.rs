//! Requests of a bidi stream without a response.

use std::collections::VecDeque;

use crate::traffic::Replies;

/// Maximum batches with a recorded time. Beyond it every second one is dropped, and its requests count with the
/// previous batch. So memory is bounded even for a stream of days whose server rarely responds.
const NOTED_MAX: usize = 1024;

/// Due times of requests without a response. Requests and responses are matched by number.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Number of the first request, and time, of each batch.
    noted: VecDeque<(u64, u64)>,
    /// Minimum number of requests between recorded batches.
    spacing: u64,
    answered: u64,
}

impl Unanswered {
    /// Adds a batch of requests that starts with number `first` and was due at `at_ns`.
    pub(crate) fn send(&mut self, first: u64, at_ns: u64) {
        let Self { noted, spacing, answered } = self;
        if *answered == first {
            // All have a response.
            noted.clear();
            *spacing = 0;
        }
        if noted.back().is_some_and(|(last, _)| first - last < *spacing) {
            return;
        }
        if noted.len() == NOTED_MAX {
            let mut is_kept = false;
            noted.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            *spacing = 2 * (first - noted[0].0) / NOTED_MAX as u64;
        }
        noted.push_back((first, at_ns));
    }

    /// Records the response times of all requests below `upto`, which must have been sent.
    pub(crate) fn answer(&mut self, upto: u64, now_ns: u64, replies: &mut Vec<Replies>) {
        while self.answered < upto {
            let Some(&(_, at_ns)) = self.noted.front() else { return };
            let next = self.noted.get(1).map_or(u64::MAX, |(first, _)| *first);
            let end = next.min(upto);
            if end > self.answered {
                let (took_ns, count) = (now_ns.saturating_sub(at_ns), end - self.answered);
                replies.push(Replies { took_ns, count });
                self.answered = end;
            }
            if end == next {
                self.noted.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(unanswered: &mut Unanswered, upto: u64, now_ns: u64) -> Vec<(u64, u64)> {
        let mut replies = Vec::new();
        unanswered.answer(upto, now_ns, &mut replies);
        replies.iter().map(|it| (it.took_ns, it.count)).collect()
    }

    #[test]
    fn response_answers_the_request_of_its_number() {
        let mut unanswered = Unanswered::default();
        assert_eq!(answered(&mut unanswered, 0, 7), []);
        for (first, at_ns) in [(0, 100), (4, 140), (5, 150)] {
            unanswered.send(first, at_ns);
        }
        assert_eq!(answered(&mut unanswered, 1, 200), [(100, 1)]);
        assert_eq!(answered(&mut unanswered, 1, 200), []);
        assert_eq!(answered(&mut unanswered, 7, 300), [(200, 3), (160, 1), (150, 2)]);
        unanswered.send(7, 400);
        assert_eq!(answered(&mut unanswered, 8, 410), [(10, 1)]);
    }

    #[test]
    fn of_many_batches_some_stand_for_all() {
        const COUNT: u64 = 1_000_000;
        let mut unanswered = Unanswered::default();
        for number in 0..COUNT {
            unanswered.send(number, number);
            assert!(unanswered.noted.len() <= NOTED_MAX);
        }
        assert!(unanswered.noted.len() >= NOTED_MAX / 4, "{}", unanswered.noted.len());
        let replies = answered(&mut unanswered, COUNT, COUNT);
        assert_eq!(replies.iter().map(|(_, count)| count).sum::<u64>(), COUNT);
        // Each has the time of a slightly earlier request.
        let mut first = 0;
        for (took_ns, count) in replies {
            assert_eq!(took_ns, COUNT - first);
            assert!(count <= 4 * COUNT / NOTED_MAX as u64, "{count}");
            first += count;
        }
        // Later batches are all recorded again.
        unanswered.send(COUNT, 7);
        unanswered.send(COUNT + 1, 8);
        assert_eq!(answered(&mut unanswered, COUNT + 2, 10), [(3, 1), (2, 1)]);
    }
}
