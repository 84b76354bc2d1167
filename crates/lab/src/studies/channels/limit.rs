//! Determines what limits a client, from figures alone.

use super::numbers::{LoadRow, LoadsTally, MultiConnection, largest_gain};

/// Share of ideal scaling below which a line no longer scales.
const SCALES_SHARE: f64 = 0.5;
/// Smallest gain by more connections for which one connection counts as the limit, however certain.
const GAIN_MIN: f64 = 1.15;
/// Share of its processors above which a side is the limit.
const BUSY_SHARE: f64 = 0.88;
/// Share of its processors below which a side is certainly not the limit.
const SPARE_SHARE: f64 = 0.7;
/// Largest factor by which concurrent calls vary if their number is limited.
const SAME_FACTOR: f64 = 1.15;
/// Smallest share of a call's time on the network if the network is the limit.
const NETWORK_SHARE: f64 = 0.5;

/// Rate of a client at one number of calls in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ReachedRate {
    pub(crate) in_flight: u32,
    pub(crate) rate_per_s: f64,
    /// Processors used by the client.
    pub(crate) client_processors: Option<f64>,
    /// Processors used by the server.
    pub(crate) server_processors: Option<f64>,
}

/// Figures of one client and server to judge.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LimitInput {
    /// Round-trip time added by the network, ns.
    pub(crate) round_trip_ns: f64,
    /// Rates over one connection, by ascending calls in flight.
    pub(crate) one: Vec<ReachedRate>,
    /// Operations per second at the lowest load, of the fastest strategy. With one call in flight every strategy has
    /// one connection.
    pub(crate) lone_per_s: f64,
    /// Gains of more connections, by calls in flight.
    pub(crate) rows: Vec<LoadRow>,
    /// Processors available to the client, if known.
    pub(crate) client_processors: Option<f64>,
    /// Processors available to the server, if known.
    pub(crate) server_processors: Option<f64>,
}

/// Limiting factor of a client over one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Limit {
    /// No limit was reached: the rate grows with the calls in flight.
    Nothing,
    /// No limit was reached, and calls mostly wait for the network.
    Network,
    /// The client's single connection: several move more.
    Channel,
    /// The number of concurrent calls on one connection: the server's stream limit, or flow control.
    Streams,
    /// The client's processors.
    ClientCpu,
    /// The server's processors.
    Server,
    /// Both sides' processors.
    Both,
    /// None of these; the limit was not measured.
    Unknown,
    /// No side's processors, and a gain of more connections is uncertain.
    CannotTell,
}

/// A limit with the figures behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LimitJudgement {
    pub(crate) limit: Limit,
    /// Calls in flight from which the rate over one connection falls behind ideal scaling; `None` if it never does.
    pub(crate) knee: Option<u32>,
    /// Load with the largest gain of more connections.
    pub(crate) gain: Option<Gain>,
    /// Number of loads with a gain, without one, and undecided.
    pub(crate) tally: LoadsTally,
    /// Rate over one connection at the most calls in flight.
    pub(crate) last: ReachedRate,
    /// Number of concurrent calls on one connection, if that is the limit.
    pub(crate) streams: Option<f64>,
}

/// Gain of more connections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gain {
    /// Calls in flight of the largest gain.
    pub(crate) in_flight: u32,
    /// Smallest number of calls in flight with a gain.
    pub(crate) from: u32,
    /// Best strategy at the largest gain.
    pub(crate) several: MultiConnection,
}

/// Determines the client's limit. `None` if it was not measured over one connection.
pub(crate) fn judge(scene: &LimitInput) -> Option<LimitJudgement> {
    let one = &scene.one;
    let (first, last) = (one.first()?, *one.last()?);
    let lone = scene.lone_per_s.max(first.rate_per_s) / f64::from(first.in_flight);
    let ideal = |in_flight: u32| lone * f64::from(in_flight);
    let is_behind = |it: &&ReachedRate| it.rate_per_s < SCALES_SHARE * ideal(it.in_flight);
    let knee = one.iter().find(is_behind).map(|it| it.in_flight);
    let tally: LoadsTally = scene.rows.iter().collect();
    let does_gain = scene.rows.iter().filter_map(LoadRow::gain).any(is_worth_it);
    let streams = streams(scene, first);
    let client = share(last.client_processors, scene.client_processors);
    let server = share(last.server_processors, scene.server_processors);
    let limit = match (does_gain, knee) {
        (true, _) if streams.is_some() => Limit::Streams,
        (true, _) => Limit::Channel,
        (false, Some(_)) => match (client >= BUSY_SHARE, server >= BUSY_SHARE) {
            (true, true) => Limit::Both,
            (true, false) => Limit::ClientCpu,
            (false, true) => Limit::Server,
            (false, false) if tally.gains == 0 && tally.cannot_tell > 0 => Limit::CannotTell,
            (false, false) => Limit::Unknown,
        },
        (false, None) if waits_for_network(scene, first) => Limit::Network,
        (false, None) => Limit::Nothing,
    };
    let streams = streams.filter(|_| limit == Limit::Streams);
    Some(LimitJudgement { limit, knee, gain: gain(&scene.rows), tally, last, streams })
}

/// Returns the share of its processors that a side used; 0 if unknown, so that it is not considered the limit.
fn share(used: Option<f64>, of: Option<f64>) -> f64 {
    used.zip(of).filter(|(_, of)| *of > 0.0).map_or(0.0, |(used, of)| used / of)
}

/// Returns whether a lone call spends most of its time on the network.
fn waits_for_network(scene: &LimitInput, first: &ReachedRate) -> bool {
    let lone_ns = 1e9 * f64::from(first.in_flight) / first.rate_per_s;
    scene.round_trip_ns >= NETWORK_SHARE * lone_ns
}

/// Returns whether the gain is large enough to consider one connection the limit.
fn is_worth_it(several: &MultiConnection) -> bool {
    several.over_one.ratio.is_some_and(|ratio| ratio.ratio >= GAIN_MIN)
}

/// Returns the largest gain of more connections, and the load from which they gain.
fn gain(rows: &[LoadRow]) -> Option<Gain> {
    let (row, several) = largest_gain(rows.iter())?;
    let from = rows.iter().find(|row| row.gain().is_some())?.in_flight;
    Some(Gain { in_flight: row.in_flight, from, several: several.clone() })
}

/// Returns the number of concurrent calls on one connection, if that is limited.
///
/// If each call takes as long as a lone one, a connection with `rate` calls per second has `rate × time` under way
/// (Little's law). That number is limited if it stays the same at different loads while both sides have spare
/// processors.
///
/// Example: a lone call takes 5 ms, and 256 and 1024 in flight both move 20,000 calls/s. So 100 calls are under way.
fn streams(scene: &LimitInput, first: &ReachedRate) -> Option<f64> {
    let [.., before, last] = scene.one.as_slice() else { return None };
    let spare = |used, of| share(used, of) < SPARE_SHARE;
    let is_spare = spare(last.client_processors, scene.client_processors)
        && spare(last.server_processors, scene.server_processors);
    let lone_s = f64::from(first.in_flight) / first.rate_per_s;
    let under_way = |reached: &ReachedRate| reached.rate_per_s * lone_s;
    let (a, b) = (under_way(before), under_way(last));
    let is_same = a.max(b) <= SAME_FACTOR * a.min(b);
    let is_fewer = b < SCALES_SHARE * f64::from(last.in_flight) && a < f64::from(before.in_flight);
    // Over a short path latency grows by queueing, so the number means nothing.
    (is_spare && is_same && is_fewer && waits_for_network(scene, first)).then_some(b)
}

#[cfg(test)]
mod tests {
    use thalweg_measure::statistics::{Interval, Ratio};

    use super::*;
    use crate::load::Strategy;
    use crate::load::verdict::{Better, JudgedRatio, Verdict};
    use crate::stack::Pair;
    use crate::studies::channels::numbers::Best;

    /// In flight, rate, client's processors, server's processors.
    type Figures = (u32, f64, f64, f64);

    fn reached(figures: &[Figures]) -> Vec<ReachedRate> {
        let reached = |&(in_flight, rate_per_s, client, server): &Figures| ReachedRate {
            in_flight,
            rate_per_s,
            client_processors: Some(client),
            server_processors: Some(server),
        };
        figures.iter().map(reached).collect()
    }

    /// Returns rows in which four connections have these gains over one, by calls in flight. Intervals reach from gain
    /// ÷ `spread` to gain × `spread`.
    fn rows(gains: &[(u32, f64)], spread: f64) -> Vec<LoadRow> {
        let row = |&(in_flight, gain): &(u32, f64)| {
            let interval = Some(Interval { low: gain / spread, high: gain * spread });
            let ratio = Some(Ratio { ratio: gain, interval, pairs: 6 });
            let four = MultiConnection {
                pair: Pair::ours(),
                strategy: Strategy::Fixed(4),
                name: "four".to_owned(),
                connections: 4,
                rate_per_s: gain * 1e3,
                over_one: JudgedRatio::new(ratio, 0.01, Better::More),
            };
            let best = match four.over_one.verdict {
                Verdict::Faster => Best::Several(four.clone()),
                Verdict::CannotTell => Best::CannotTell,
                _ => Best::One,
            };
            LoadRow { in_flight, several: vec![four], best, adaptive: None }
        };
        gains.iter().map(row).collect()
    }

    fn scene(round_trip_ns: f64, one: &[Figures], gains: &[(u32, f64)]) -> LimitInput {
        LimitInput {
            round_trip_ns,
            one: reached(one),
            lone_per_s: 0.0,
            rows: rows(gains, 1.05),
            client_processors: Some(4.0),
            server_processors: Some(4.0),
        }
    }

    fn check(scene: &LimitInput, limit: Limit, knee: Option<u32>) -> LimitJudgement {
        let judgement = judge(scene).unwrap();
        assert_eq!((judgement.limit, judgement.knee), (limit, knee), "{judgement:?}");
        judgement
    }

    #[test]
    fn connection_is_the_limit_if_several_are_faster() {
        // Published figures: about 6 times the rate with 64 in flight, long before any processor is busy.
        let one = [(1, 20e3, 0.4, 0.4), (8, 100e3, 0.9, 0.8), (64, 150e3, 1.2, 1.0)];
        let judgement = check(&scene(0.0, &one, &[(8, 1.0), (64, 6.0)]), Limit::Channel, Some(64));
        let gain = judgement.gain.unwrap();
        assert_eq!((gain.several.connections, gain.in_flight, gain.from), (4, 64, 64));
        assert_eq!(judgement.tally, LoadsTally { gains: 1, nothing: 1, cannot_tell: 0 });
    }

    #[test]
    fn gain_at_a_single_load_counts_if_its_interval_is_conclusive() {
        let one = [(1, 20e3, 0.4, 0.4), (4, 50e3, 1.2, 1.0), (16, 60e3, 1.2, 1.0), (64, 70e3, 1.2, 1.0)];
        let mut scene = scene(0.0, &one, &[(4, 1.5), (16, 1.0), (64, 1.0)]);
        let gain = check(&scene, Limit::Channel, Some(16)).gain.unwrap();
        assert_eq!((gain.from, gain.in_flight), (4, 4));
        scene.rows = rows(&[(4, 1.5), (16, 1.0), (64, 1.0)], 1.6);
        let judgement = check(&scene, Limit::CannotTell, Some(16));
        assert_eq!((judgement.gain, judgement.tally.cannot_tell), (None, 3));
    }

    #[test]
    fn small_certain_gain_is_reported_but_not_the_limit() {
        let one = [(1, 20e3, 0.4, 0.4), (64, 150e3, 1.2, 1.0)];
        let judgement = check(&scene(0.0, &one, &[(64, 1.08)]), Limit::Unknown, Some(64));
        assert_eq!(judgement.gain.unwrap().in_flight, 64);
    }

    #[test]
    fn reported_gain_has_largest_lower_bound() {
        let mut wide = rows(&[(4, 2.0)], 1.9);
        wide.extend(rows(&[(16, 1.6)], 1.05));
        assert_eq!(gain(&wide).map(|gain| (gain.in_flight, gain.from)), Some((16, 4)));
    }

    #[test]
    fn busy_processors_are_the_limit_where_more_connections_gain_nothing() {
        let check = |client: f64, server: f64, limit: Limit| {
            let figures = [(1, 20e3, 0.4, 0.4), (64, 150e3, client, server)];
            check(&scene(0.0, &figures, &[(64, 1.0)]), limit, Some(64));
        };
        check(3.9, 2.0, Limit::ClientCpu);
        check(2.0, 3.9, Limit::Server);
        check(3.8, 3.9, Limit::Both);
        check(2.0, 2.0, Limit::Unknown);
    }

    #[test]
    fn unknown_cpu_usage_is_not_the_limit() {
        let figures = [(1, 20e3, 0.4, 0.4), (64, 150e3, 3.9, 0.0)];
        let mut scene = scene(0.0, &figures, &[(64, 1.0)]);
        scene.server_processors = None;
        scene.one[1].server_processors = None;
        check(&scene, Limit::ClientCpu, Some(64));
        scene.client_processors = None;
        check(&scene, Limit::Unknown, Some(64));
    }

    #[test]
    fn calls_wait_for_the_network_if_delay_is_long() {
        let figures = [(1, 195.0, 0.01, 0.01), (64, 12.2e3, 0.2, 0.2), (256, 48e3, 0.5, 0.5)];
        let judgement = check(&scene(5e6, &figures, &[(64, 1.0), (256, 1.0)]), Limit::Network, None);
        assert_eq!((judgement.gain, judgement.last.in_flight), (None, 256));
        check(&scene(0.0, &figures, &[(64, 1.0), (256, 1.0)]), Limit::Nothing, None);
    }

    #[test]
    fn constant_number_of_active_calls_is_a_stream_limit() {
        let one =
            [(1, 200.0, 0.01, 0.01), (64, 12.7e3, 0.2, 0.2), (256, 20e3, 0.4, 0.4), (1024, 20.4e3, 0.4, 0.4)];
        let four = [(256, 2.5), (1024, 3.9)];
        let judgement = check(&scene(5e6, &one, &four), Limit::Streams, Some(256));
        assert!((judgement.streams.unwrap() - 102.0).abs() < 0.5, "{judgement:?}");
        // With busy processors the number means nothing.
        let busy = one.map(|(in_flight, rate, client, _)| (in_flight, rate, client * 9.0, 3.9));
        check(&scene(5e6, &busy, &four), Limit::Channel, Some(256));
        // The same if calls wait for each other instead of the network.
        check(&scene(0.0, &one, &four), Limit::Channel, Some(256));
    }

    #[test]
    fn unmeasured_stack_is_not_judged() {
        assert_eq!(judge(&LimitInput::default()), None);
    }
}
