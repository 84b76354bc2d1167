//! Compares the adaptive channel with each fixed number of lanes, over a grid of worlds, in a committed table.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::costs::{GRPC_CPP, OURS};
use super::run::{Adaptive, BEST_TOLERANCE, Best, best_fixed, check_table};
use super::*;

const IN_FLIGHT: [usize; 6] = [1, 4, 16, 64, 256, 1024];
const PATH: &str = "src/model/grid.txt";
/// Time without opened or closed lanes that counts as settled, and the maximum wait for it.
const QUIET: Duration = Duration::from_millis(1_500);
const SETTLED_MAX: Duration = Duration::from_secs(8);
/// Calls slower than this over one lane get this many times as long.
const SLOW_S: f64 = 0.1;
const SLOW_TIMES: u32 = 8;

struct GridRow {
    costs: (&'static str, Costs),
    cores: (usize, usize),
    round_trip: Duration,
}

#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) best: Best,
    pub(super) lanes: usize,
    /// The adaptive channel's rate relative to the best fixed one.
    pub(super) share: f64,
    pub(super) settled: Duration,
}

impl GridRow {
    fn world(&self, in_flight: usize) -> World {
        World {
            client_cores: self.cores.0,
            server_cores: self.cores.1,
            round_trip: self.round_trip,
            costs: self.costs.1,
            load: Load::Closed { in_flight },
        }
    }
}

impl Point {
    pub(super) fn of(world: World) -> Self {
        let best = best_fixed(world);
        let latency_s = world.load.calls() as f64 / best.one_lane_calls_per_s;
        let times = if latency_s > SLOW_S { SLOW_TIMES } else { 1 };
        let mut adaptive = Adaptive::new(world);
        adaptive.run_until_quiet(times * QUIET, times * SETTLED_MAX);
        let rate = adaptive.rate_of_last(times * Duration::from_secs(1));
        let lanes = adaptive.model.ready_lanes();
        Self { best, lanes, share: rate / best.calls_per_s, settled: adaptive.last_change() }
    }
}

#[test]
fn adaptive_lanes_match_the_best_fixed_number() {
    let rows = rows();
    let worlds: Vec<World> =
        rows.iter().flat_map(|row| IN_FLIGHT.map(|in_flight| row.world(in_flight))).collect();
    let points = on_all_cores(&worlds, Point::of);

    check_table(PATH, include_str!("grid.txt"), &table(&rows, &points));

    let count = |is: &dyn Fn(&Point) -> bool| points.iter().filter(|point| is(point)).count();
    let total = points.len();
    let within_5 = count(&|point| point.share >= 0.95);
    assert!(within_5 * 100 >= total * 95, "{within_5} of {total} points are within 5 %");
    for (world, point) in worlds.iter().zip(&points) {
        // One world is at 0.87, all others are at 0.9 or more.
        assert!(point.share >= 0.86, "{:.3} of the best rate: {world:?}", point.share);
        // Lanes opened one after the other may do better than lanes opened together.
        let is_earned = point.share > 1.0 + BEST_TOLERANCE;
        assert!(
            point.lanes <= point.best.lanes + 2 || is_earned,
            "{} lanes where {} do: {world:?}",
            point.lanes,
            point.best.lanes
        );
    }
    for (world, point) in worlds.iter().zip(&points) {
        let is_far = world.round_trip >= Duration::from_millis(5) && world.load.calls() <= 256;
        assert!(
            !is_far || point.lanes <= 2,
            "{} lanes where the network is what limits: {world:?}",
            point.lanes
        );
    }
}

fn rows() -> Vec<GridRow> {
    let mut rows = Vec::new();
    let micros = |list: &[u64]| list.iter().copied().map(Duration::from_micros).collect::<Vec<_>>();
    let near_and_far = micros(&[10, 50, 200, 1_000, 5_000, 50_000]);
    for cores in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (16, 2)] {
        rows.extend(near_and_far.iter().map(|&round_trip| GridRow {
            costs: ("ours", OURS),
            cores,
            round_trip,
        }));
    }
    let some = micros(&[10, 50, 200, 5_000]);
    for cores in [(1, 1), (4, 4), (16, 16)] {
        rows.extend(some.iter().map(|&round_trip| GridRow {
            costs: ("gRPC C++", GRPC_CPP),
            cores,
            round_trip,
        }));
    }
    rows
}

fn table(rows: &[GridRow], points: &[Point]) -> String {
    let mut table = String::from(
        "The adaptive channel and fixed numbers of lanes, in the model. A cell: the fewest lanes within 2 % of the \
         highest\nrate of 1 to 16 fixed lanes; those of the adaptive channel once settled; its rate as a share of that \
         highest one.\n\
         Cores are the client's and the server's.\n\n\
         costs     cores  round trip",
    );
    for in_flight in IN_FLIGHT {
        write!(table, "{in_flight:>9} in flight").expect("writing to a String does not fail");
    }
    table.push('\n');
    for (row, points) in rows.iter().zip(points.chunks(IN_FLIGHT.len())) {
        let cores = format!("{}:{}", row.cores.0, row.cores.1);
        let round_trip = format!("{:?}", row.round_trip);
        write!(table, "{:<9} {cores:<6} {round_trip:>10}", row.costs.0)
            .expect("writing to a String does not fail");
        for point in points {
            let (best, lanes) = (point.best.lanes, point.lanes);
            write!(table, "{:>9} {lanes:>2}  {:.3}", best, point.share)
                .expect("writing to a String does not fail");
        }
        table.push('\n');
    }
    let settled = points.iter().map(|point| point.settled).max().unwrap_or_default();
    writeln!(table, "\n{} points; the last to settle took {settled:?}", points.len())
        .expect("writing to a String does not fail");
    table
}

/// Checks published measurements of gRPC C++. On a fast network, several connections give about 4.5 to 6 times the rate
/// of one, with fewer than 100 calls in flight. With a round trip of 5 ms they give nothing.
#[test]
fn grpc_cpp_gains_match_published_measurements() {
    let gain = |round_trip, in_flight| {
        let row = GridRow { costs: ("gRPC C++", GRPC_CPP), cores: (16, 16), round_trip };
        let world = row.world(in_flight);
        let mut adaptive = Adaptive::new(world);
        adaptive.run_until_quiet(QUIET, SETTLED_MAX);
        adaptive.rate_of_last(Duration::from_secs(1)) / best_fixed(world).one_lane_calls_per_s
    };
    for in_flight in [48, 52, 56] {
        let near = gain(Duration::from_micros(50), in_flight);
        assert!((4.5..=6.0).contains(&near), "{near:.2} times the rate with {in_flight} in flight at 50 µs");
    }
    for in_flight in [16, 32, 64, 96] {
        let far = gain(Duration::from_millis(5), in_flight);
        assert!((0.97..1.03).contains(&far), "{far:.2} times the rate with {in_flight} in flight at 5 ms");
    }
}

pub(super) fn on_all_cores<T: Copy + Sync, R: Copy + Send>(
    inputs: &[T],
    of: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; inputs.len()]);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&input) = inputs.get(index) else { break };
                    let result = of(input);
                    results.lock().expect("no thread panicked")[index] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("no thread panicked");
    results.into_iter().map(|result: Option<R>| result.expect("each input was taken")).collect()
}
