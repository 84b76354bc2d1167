//! Starts of a run by its schedule, or of a part of it.

use crate::arrivals::Arrivals;
use crate::plan::{Pace, Plan, Stop};

/// Returns number and time of each start, in ns since the warm-up began; none for a closed loop.
///
/// A part draws the starts of the whole load and makes its own ones. So the end of the load and the random times are
/// the same for all parts.
pub(crate) fn starts(plan: &Plan) -> impl Iterator<Item = (u64, u64)> + Send + use<> {
    let arrivals = match &plan.pace {
        Pace::Closed { .. } => None,
        Pace::Open { schedule, spacing, seed } => {
            Some(Arrivals::new(schedule.after(plan.warm_up), *spacing, *seed))
        }
    };
    let from_ns = plan.warm_up.as_nanos() as u64;
    let mut left = match plan.stop {
        Stop::Calls(calls) => calls,
        Stop::After(_) | Stop::Messages(_) => u64::MAX,
    };
    let share = plan.share;
    let all_starts = arrivals.into_iter().flatten().take_while(move |&start| {
        let counts = start >= from_ns;
        let is_left = !counts || left > 0;
        left = left.saturating_sub(u64::from(counts));
        is_left
    });
    (0..).zip(all_starts).filter(move |(number, _)| share.is_none_or(|share| share.has(*number)))
}

/// Returns the number of starts after the warm-up, if the schedule of an open loop ends before enough of them.
pub(crate) fn too_few(plan: &Plan) -> Option<u64> {
    let (Pace::Open { schedule, .. }, Stop::Calls(calls)) = (&plan.pace, plan.own_stop()) else {
        return None;
    };
    // A schedule that continues has enough.
    schedule.ends_after(0.0)?;
    let from_ns = plan.warm_up.as_nanos() as u64;
    let there = starts(plan).filter(|(_, start)| *start >= from_ns).count() as u64;
    (there < calls).then_some(there)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::arrivals::Spacing;
    use crate::label::Label;
    use crate::plan::UnfinishedCalls;
    use crate::share::Share;

    fn plan(schedule: &str, spacing: Spacing, stop: Stop, share: Option<Share>) -> Plan {
        Plan {
            pace: Pace::Open { schedule: schedule.parse().unwrap(), spacing, seed: 7 },
            in_flight: 1,
            stop,
            max_duration: None,
            unfinished_calls: UnfinishedCalls::ByLoop,
            patience: None,
            warm_up: Duration::from_millis(300),
            interval: Duration::from_secs(1),
            share,
            start_at: None,
            label: Label::default(),
        }
    }

    #[test]
    fn starts_of_all_shares_equal_whole_schedule() {
        let check = |schedule: &str, spacing: Spacing, stop: Stop, of: u32| {
            let of_plan = |share| -> Vec<(u64, u64)> {
                starts(&plan(schedule, spacing, stop, share))
                    .take_while(|(_, start)| *start < 2_000_000_000)
                    .collect()
            };
            let all_starts = of_plan(None);
            assert!(all_starts.len() > 500, "{schedule}: {}", all_starts.len());
            let parts: Vec<Vec<(u64, u64)>> =
                (0..of).map(|index| of_plan(Some(Share::new(index, of).unwrap()))).collect();
            let lengths = parts.iter().map(Vec::len);
            assert!(
                lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1,
                "{schedule}: shared out evenly"
            );
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, all_starts, "{schedule} by {of}");
            if let Stop::Calls(calls) = stop {
                let counted = all.iter().filter(|(_, start)| *start >= 300_000_000).count();
                assert_eq!(counted as u64, calls);
            }
        };
        for spacing in [Spacing::Constant, Spacing::Poisson] {
            for of in [1, 2, 3, 8] {
                check("1000", spacing, Stop::After(Duration::from_secs(9)), of);
                check("100..900/2s", spacing, Stop::After(Duration::from_secs(9)), of);
                check("900..300+200/500ms", spacing, Stop::After(Duration::from_secs(9)), of);
                check("1000", spacing, Stop::Calls(501), of);
            }
        }
    }

    #[test]
    fn early_end_of_schedule_is_detected() {
        let check = |schedule: &str, calls: u64, share: Option<Share>, expected: Option<u64>| {
            let plan = plan(schedule, Spacing::Constant, Stop::Calls(calls), share);
            assert_eq!(too_few(&plan), expected, "{schedule}, {calls} calls");
        };
        check("100..0/2s", 1000, None, Some(101));
        check("100..0/2s", 101, None, None);
        check("5@1s/3s,0", 16, None, Some(15));
        check("100..10/2s", 1000, None, None);
        // The warm-up has 30 more: the second of four parts makes every fourth of 131 starts.
        check("100..0/2s", 1000, Some(Share::new(1, 4).unwrap()), Some(25));
        let plan = plan("100..0/2s", Spacing::Poisson, Stop::After(Duration::from_secs(9)), None);
        assert_eq!(too_few(&plan), None, "it ends by time");
    }

    #[test]
    fn shares_of_constant_rate_interleave() {
        let share = Some(Share::new(1, 4).unwrap());
        let part: Vec<(u64, u64)> =
            starts(&plan("1000", Spacing::Constant, Stop::Calls(100), share)).take(3).collect();
        assert_eq!(part, [(1, 1_000_000), (5, 5_000_000), (9, 9_000_000)]);
    }
}
