//! Validity of a window of calls.

use thalweg_measure::usage::Usage;
use thalweg_measure::validity::{Cause, Reason, Validity};

use crate::record::LoadResult;

/// Judges a window by its outcome and the resources used by both processes.
///
/// A window stays valid if its client was the bottleneck, because a pair is compared as a whole.
pub(crate) fn judge_window(outcome: Result<&LoadResult, &str>, usage: Option<&Usage>) -> Validity {
    let load = match outcome {
        Ok(load) => load,
        Err(reason) => return Validity { reasons: vec![Reason::new(Cause::NotMeasured, reason)] },
    };
    let mut reasons = Vec::new();
    if load.error_count() > 0 {
        let errors = load.errors.iter().map(|(code, count)| format!("{count} {code}"));
        let text = format!("calls failed: {}", errors.collect::<Vec<_>>().join(", "));
        reasons.push(Reason::new(Cause::CallsFailed, text));
    } else if load.messages == 0 {
        reasons.push(Reason::new(Cause::NotMeasured, "no operation finished in the measured time"));
    }
    reasons.extend(usage.and_then(Usage::disturbance));
    let reported = load.notes.iter().filter(|note| note.invalidates && !note.is_client_limit());
    reasons.extend(reported.map(|note| Reason::new(Cause::Reported, note.text.clone())));
    Validity { reasons }
}
