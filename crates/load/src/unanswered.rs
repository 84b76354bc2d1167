//! The requests of a bidi stream that have no response yet.

use std::collections::VecDeque;

/// Requests whose times are kept. Where more have no response every second one's is, then every fourth one's, and so
/// on, until all are answered: a stream of days whose server answers few of its messages takes no more memory.
const NOTED_MAX: usize = 1024;

/// When requests were to be sent that have no response yet. The response of the same number answers a request.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// The number of a request and its time, ns since the stream began.
    noted: VecDeque<(u64, u64)>,
    /// A request is noted whose number is a multiple of this, and stands for as many.
    every: u64,
    sent: u64,
    answered: u64,
}

/// The request that a response answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// When it was to be sent, ns since the stream began.
    pub(crate) at_ns: u64,
    /// So many requests it stands for.
    pub(crate) count: u64,
}

impl Unanswered {
    pub(crate) fn new() -> Self {
        Self { noted: VecDeque::new(), every: 1, sent: 0, answered: 0 }
    }

    /// Requests that have no response yet.
    pub(crate) fn count(&self) -> u64 {
        self.sent - self.answered
    }

    /// A request is sent that was to be sent at this time.
    pub(crate) fn send(&mut self, at_ns: u64) {
        let number = self.sent;
        self.sent += 1;
        if self.noted.len() == NOTED_MAX {
            self.every *= 2;
            let every = self.every;
            self.noted.retain(|(number, _)| number.is_multiple_of(every));
        }
        if number.is_multiple_of(self.every) {
            self.noted.push_back((number, at_ns));
        }
    }

    /// A response has come. `None` where the time of its request was not kept, or where nothing is unanswered.
    pub(crate) fn answer(&mut self) -> Option<Answered> {
        if self.answered == self.sent {
            return None;
        }
        let number = self.answered;
        self.answered += 1;
        let (_, at_ns) = *self.noted.front().filter(|(noted, _)| *noted == number)?;
        self.noted.pop_front();
        let count = self.every.min(self.sent - number);
        if self.noted.is_empty() {
            self.every = 1;
        }
        Some(Answered { at_ns, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_answers_the_request_of_its_number() {
        let mut unanswered = Unanswered::new();
        assert_eq!(unanswered.answer(), None, "nothing was asked");
        (0..10).for_each(|number| unanswered.send(100 + number));
        for number in 0..10 {
            assert_eq!(unanswered.answer(), Some(Answered { at_ns: 100 + number, count: 1 }));
        }
        assert_eq!(unanswered.answer(), None);
    }

    #[test]
    fn of_many_some_stand_for_all() {
        const COUNT: u64 = 1_000_000;
        let mut unanswered = Unanswered::new();
        for number in 0..COUNT {
            unanswered.send(number);
            assert!(unanswered.noted.len() <= NOTED_MAX);
        }
        let answered: Vec<(u64, Answered)> =
            (0..COUNT).filter_map(|number| Some((number, unanswered.answer()?))).collect();
        assert!(answered.len() >= NOTED_MAX / 2, "{}", answered.len());
        assert!(answered.iter().all(|(number, request)| request.at_ns == *number));
        assert_eq!(answered.iter().map(|(_, request)| request.count).sum::<u64>(), COUNT);
        // Behind them each is noted again.
        unanswered.send(7);
        assert_eq!(unanswered.answer(), Some(Answered { at_ns: 7, count: 1 }));
    }
}
