//! The choice of a lane for a call among the lanes of an endpoint that accept calls.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use thalweg_balance::policy::mix;

use super::lane::Lane;
use crate::connection::Connection;
use crate::executor::current_cpu;
use crate::per_thread::thread_number;

/// Per-thread state for choosing a lane.
#[derive(Default)]
pub(super) struct LaneChoice {
    pub(super) ready: RwLock<Ready>,
    /// Index of the last call's lane.
    last: AtomicU32,
    /// Index of the lane that this thread's lane was last compared with.
    compared: AtomicU32,
}

/// The lanes that accept calls.
#[derive(Clone, Default)]
pub(super) struct Ready {
    pub(super) lanes: Vec<ReadyLane>,
    /// Whether their threads are pinned to processors.
    pub(super) are_pinned: bool,
    /// Whether another lane has no connection and may connect: the next call starts that.
    pub(super) is_repair_due: bool,
}

#[derive(Clone)]
pub(super) struct ReadyLane {
    pub(super) lane: Arc<Lane>,
    pub(super) connection: Arc<Connection>,
}

impl LaneChoice {
    #[inline]
    pub(super) fn ready(&self) -> RwLockReadGuard<'_, Ready> {
        self.ready.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lane for the next call: the same for equal keys, as long as it accepts calls.
    pub(super) fn lane<'a>(&self, ready: &'a Ready, affinity: Option<u64>) -> Option<&'a ReadyLane> {
        match affinity {
            Some(key) => ready.lanes.iter().max_by_key(|ready| rank(key, ready.lane.ordinal)),
            None => self.least_loaded(&ready.lanes, ready.are_pinned),
        }
    }

    /// Returns the least loaded lane, preferably the last call's. Prefers a lane on the caller's processor, or one
    /// whose responses arrive on the caller's thread if those of other lanes arrive elsewhere.
    ///
    /// So the next calls go together to the lanes whose responses have just arrived. A lane with its share of calls
    /// gets none: its next write would carry only some of its calls, and so would all later ones.
    fn least_loaded<'a>(&self, lanes: &'a [ReadyLane], are_pinned: bool) -> Option<&'a ReadyLane> {
        if lanes.len() < 2 {
            return lanes.first();
        }
        let last = self.last.load(Ordering::Relaxed) as usize % lanes.len();
        let load = |index: usize| lanes[index].load();
        if are_pinned && let Some(cpu) = current_cpu() {
            let least = least(last, lanes.len(), load);
            self.last.store(least as u32, Ordering::Relaxed);
            let cpus_and_loads = lanes.iter().map(|ready| (ready.lane.cpu(), ready.load()));
            return lanes.get(on_processor(cpu, load(least), cpus_and_loads).unwrap_or(least));
        }
        let thread = thread_number();
        let is_local = |index: usize| lanes[index].lane.response_thread() == thread;
        let compared = &self.compared;
        let next = || {
            let next = (compared.load(Ordering::Relaxed) as usize + 1) % lanes.len();
            compared.store(next as u32, Ordering::Relaxed);
            next
        };
        let chosen = on_thread(last, lanes.len(), load, is_local, next);
        if chosen != last {
            self.last.store(chosen as u32, Ordering::Relaxed);
        }
        lanes.get(chosen)
    }
}

impl ReadyLane {
    /// Returns the calls in flight plus one for the new call, weighted by the driver's utilization: 1 below 50 %, 1.5
    /// from 50 %, and 2 at 100 %. The steps are coarse, so that the less busy of two similar lanes does not get all
    /// calls until the next sample. Over three lanes with four calls in flight, permille steps made 47 k calls/s,
    /// quarters 66 k, and no weights 68 k.
    pub(super) fn load(&self) -> u64 {
        let busy = u64::from(self.lane.busy_permille().unwrap_or(0));
        (self.connection.in_flight() as u64 + 1) * (1000 + busy / 500 * 500)
    }
}

/// Maximum number of lanes that a call compares.
const COMPARED_MAX: usize = 16;

/// Returns the index of the least loaded of `count` lanes, the first from `last` on if there are several. With more
/// than [`COMPARED_MAX`] lanes, only that many from `last` on are compared, so that in time all are.
fn least(last: usize, count: usize, load: impl Fn(usize) -> u64) -> usize {
    let mut least = (last, load(last));
    let mut index = last;
    for _ in 1..count.min(COMPARED_MAX) {
        index = if index + 1 < count { index + 1 } else { 0 };
        let load = load(index);
        if load < least.1 {
            least = (index, load);
        }
    }
    least.0
}

/// Returns the least loaded lane whose responses arrive on the caller's thread, since its data is in that processor's
/// cache. Returns another lane if that has less than half the load, or no calls at all.
///
/// Reading a lane's load takes it out of other processors' caches. So while the thread's own lane has some calls, its
/// load is compared with only one other lane, in turn.
fn on_thread(
    last: usize,
    count: usize,
    load: impl Fn(usize) -> u64,
    is_local: impl Fn(usize) -> bool,
    next: impl FnOnce() -> usize,
) -> usize {
    let mut all_local = true;
    let mut local: Option<(usize, u64)> = None;
    let mut index = last;
    for _ in 0..count.min(COMPARED_MAX) {
        if is_local(index) {
            let load = load(index);
            if local.is_none_or(|(_, least)| load < least) {
                local = Some((index, load));
            }
        } else {
            all_local = false;
        }
        index = if index + 1 < count { index + 1 } else { 0 };
    }
    match local {
        Some((local, _)) if all_local => local,
        Some((local, local_load)) if local_load >= COMPARED_WITH_ALL_MAX => {
            let other = next();
            if local_load <= LOCAL_LOAD_RATIO_MAX * load(other) { local } else { least(other, count, load) }
        }
        local => {
            let least = least(last, count, &load);
            let least_load = load(least);
            // No lane gets a second call while another has none.
            let max = if least_load >= LOAD_OF_ONE { LOCAL_LOAD_RATIO_MAX * least_load } else { least_load };
            local.filter(|(_, local_load)| *local_load <= max).map_or(least, |(local, _)| local)
        }
    }
}

/// Minimum load of a lane with a call.
const LOAD_OF_ONE: u64 = 2 * 1000;
/// From this load of its own lane (four calls), a thread compares it with only one other lane.
const COMPARED_WITH_ALL_MAX: u64 = 5 * 1000;

/// Returns the lane on the caller's processor, unless its load is more than [`LOCAL_LOAD_RATIO_MAX`] times `load`.
/// Waking a thread of the same processor wakes no sleeping processor. `lanes` yields each lane's processor and load.
fn on_processor(cpu: usize, load: u64, lanes: impl Iterator<Item = (Option<usize>, u64)>) -> Option<usize> {
    let local = lanes.enumerate().filter(|(_, (lane, _))| *lane == Some(cpu));
    let (index, (_, local)) = local.min_by_key(|(_, (_, load))| *load)?;
    (local <= LOCAL_LOAD_RATIO_MAX * load).then_some(index)
}

/// With callers on one processor only, its lane gets two thirds of their calls.
const LOCAL_LOAD_RATIO_MAX: u64 = 2;

/// Rendezvous hashing: a key takes the lane with the highest value. When a lane is added or removed, only the keys
/// move for which it has the highest value.
fn rank(key: u64, lane: u64) -> u64 {
    mix(key ^ mix(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of 10,000 keys change their lane when `before` lanes become `after`.
    fn moved(before: u64, after: u64) -> usize {
        let lane = |key, lanes| (0..lanes).max_by_key(|&lane| rank(key, lane));
        (0..10_000).filter(|&key| lane(key, before) != lane(key, after)).count()
    }

    #[test]
    fn few_keys_move_when_number_of_lanes_changes() {
        let check = |before, after, expected: std::ops::Range<usize>| {
            let moved = moved(before, after);
            assert!(expected.contains(&moved), "{before} to {after} lanes: {moved} keys moved");
        };
        check(1, 2, 4800..5200);
        check(4, 5, 1800..2200);
        check(5, 4, 1800..2200);
        check(15, 16, 500..750);
    }

    #[test]
    fn calls_go_to_least_loaded_lanes_one_after_the_other() {
        let pick = |loads: &mut [u64], calls: usize| {
            let mut last = 0;
            let mut picked = Vec::new();
            for _ in 0..calls {
                last = least(last, loads.len(), |lane| loads[lane]);
                loads[last] += 1;
                picked.push(last);
            }
            picked
        };
        assert_eq!(pick(&mut [4, 4, 4, 4], 4), [0, 1, 2, 3], "each gets one");
        assert_eq!(pick(&mut [4, 2, 4, 4], 4), [1, 1, 1, 2], "the answers of one have come");
        assert_eq!(pick(&mut [1, 1, 0], 1), [2]);

        let mut many = [0; 100];
        pick(&mut many, 1000);
        assert!(many.iter().all(|&load| load == 10), "{many:?}");
        // A lane that has finished its calls is found by a later call.
        many[50] = 0;
        let picked = pick(&mut many, 100);
        assert!(many[50] >= 10, "{picked:?}");
    }

    #[test]
    fn caller_prefers_lane_of_its_processor_unless_much_more_loaded() {
        let check = |cpu, load, lanes: &[(Option<usize>, u64)], expected: Option<usize>| {
            assert_eq!(on_processor(cpu, load, lanes.iter().copied()), expected, "{cpu}, {load}: {lanes:?}");
        };
        check(1, 5, &[(Some(0), 5), (Some(1), 10)], Some(1));
        check(1, 5, &[(Some(0), 5), (Some(1), 11)], None);
        check(0, 5, &[(Some(0), 9), (Some(1), 5), (Some(0), 8)], Some(2));
        check(2, 5, &[(Some(0), 5), (None, 0)], None);
    }

    #[test]
    fn call_prefers_lane_of_its_thread_unless_another_has_much_less_load() {
        // Calls of each lane, and the lanes of the thread.
        let check = |calls: &[u64], local: &[usize], next: usize, expected: usize| {
            let load = |lane: usize| (calls[lane] + 1) * 1000;
            let chosen = on_thread(0, calls.len(), load, |lane| local.contains(&lane), || next);
            assert_eq!(chosen, expected, "{calls:?}, {local:?}, {next}");
        };
        check(&[8, 8, 8, 8], &[2], 3, 2);
        check(&[8, 7, 8, 6], &[0, 2], 3, 0);
        check(&[8, 7, 6, 6], &[0, 2], 3, 2);
        check(&[4, 3, 2, 1], &[0, 1, 2, 3], 0, 3);
        check(&[4, 3, 2, 1], &[], 0, 3);
        // A lane with less than half the load is found if it is compared, and then the least loaded is taken.
        check(&[9, 3, 8, 2], &[0], 1, 3);
        check(&[9, 3, 8, 2], &[0], 2, 0);
        check(&[0, 0], &[1], 0, 1);
        // With few calls all lanes are compared: no lane gets a second call while another has none.
        check(&[1, 1, 1, 0], &[0], 1, 3);
        check(&[1, 1, 1, 1], &[2], 1, 2);
        check(&[3, 3, 3, 1], &[2], 1, 2);
        check(&[3, 3, 4, 1], &[2], 1, 2);
        check(&[3, 3, 4, 1], &[2], 3, 3);
    }

    #[test]
    fn keys_are_spread_evenly() {
        let mut keys = [0; 8];
        for key in 0..8000 {
            let lane = (0..8).max_by_key(|&lane| rank(key, lane)).expect("eight of them");
            keys[lane as usize] += 1;
        }
        assert!(keys.iter().all(|count| (850..1150).contains(count)), "{keys:?}");
    }
}
