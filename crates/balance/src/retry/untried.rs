//! Servers for further attempts at a call: preferably others than those that it has tried.

/// Maximum number of picks for an attempt. Policies take turns or pick at random, so a few find another server.
const PICKS_MAX: usize = 16;

/// Picks a server for another attempt at a call: the first of up to 16 picks that the call has not tried, or the first
/// pick if there is none. `None` if the first pick finds no server at all.
///
/// gRFC A6 leaves this to the balancing policy, which does not know what a call has tried. A policy that gives equal
/// keys the same server, such as `ring_hash`, gives it to each attempt.
pub fn prefer_untried<S>(mut pick: impl FnMut() -> Option<S>, is_tried: impl Fn(&S) -> bool) -> Option<S> {
    let first = pick()?;
    if !is_tried(&first) {
        return Some(first);
    }
    let mut others = (1..PICKS_MAX).map_while(|_| pick());
    Some(others.find(|other| !is_tried(other)).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the pick among `picks`, after which there is none, and the number of picks.
    fn check(picks: &[u32], tried: &[u32], expected: Option<u32>, count: usize) {
        let mut left = picks.iter().copied();
        let mut picked = 0;
        let pick = || {
            picked += 1;
            left.next()
        };
        assert_eq!(prefer_untried(pick, |server| tried.contains(server)), expected, "{picks:?} {tried:?}");
        assert_eq!(picked, count, "{picks:?} {tried:?}");
    }

    #[test]
    fn untried_server_is_preferred() {
        check(&[1, 2], &[], Some(1), 1);
        check(&[1, 2], &[2], Some(1), 1);
        check(&[1, 2], &[1], Some(2), 2);
        check(&[1, 2, 1, 3], &[1, 2], Some(3), 4);
    }

    #[test]
    fn tried_server_is_better_than_none() {
        check(&[1; 20], &[1], Some(1), PICKS_MAX);
        check(&[1, 2, 1], &[1, 2], Some(1), 4);
        check(&[], &[1], None, 1);
    }
}
