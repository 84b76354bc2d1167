//! Plan of the connections study: cost per call as connections grow, and cost of new connections.

use std::time::Duration;

use thalweg_measure::size::ByteSize;

use super::analyse::Load;
use super::reach::Many;
use super::share::Share;
use crate::load::gathered::distinct;
use crate::load::{Draft, Point, Strategy, Transport, Window, Work, planned};
use crate::record::CallType;
use crate::stack::{Pair, Stack};
use crate::study::draft::in_rounds;
use crate::study::rounds::Length;
use crate::study::{Plan, PlanError};

/// Window length with warm-up, without extra time for many calls in flight.
const LENGTH: Length = Length {
    warmup_min: Duration::from_millis(100),
    warmup_share: 5,
    min: Duration::from_millis(350),
    max: Duration::from_secs(1),
};
/// Warm-up per call in flight. Each call in flight completes once before measuring, even with a server of only 40,000
/// calls per second.
const TURN_PER_CALL: Duration = Duration::from_micros(25);
/// Calls in flight for each additional window length, up to `WEIGHT_MAX` lengths, so that each connection makes several
/// calls.
const IN_FLIGHT_OF_A_LENGTH: u32 = 10_000;
const WEIGHT_MAX: u32 = 4;
/// Number of new connections under way at once.
const ARRIVING: u32 = 16;

/// Parameters of the connections study, and its time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionsOptions {
    /// Servers in the order of measuring, ours first, without the bare echo.
    pub servers: Vec<Stack>,
    /// Stacks whose own client is also measured, with its own server.
    pub clients: Vec<Stack>,
    /// Servers whose new connections are also measured over TLS.
    pub tls: Vec<Stack>,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    /// Calls in flight on each active connection.
    pub in_flight: Vec<u32>,
    /// Shares of active connections.
    pub active: Vec<Share>,
    /// Payload bytes of a message.
    pub size: ByteSize,
    /// Windows per server and point.
    pub rounds: u32,
    /// Whether the bare echo takes part.
    pub with_floor: bool,
    /// Limit of the plan's total time.
    pub budget: Duration,
}

impl ConnectionsOptions {
    /// Default numbers of connections.
    pub const CONNECTIONS: [Many; 5] =
        [Many::Number(1), Many::Number(10), Many::Number(100), Many::Number(1000), Many::Number(10_000)];

    /// Plans 1, 4 and 16 calls in flight on 1, 10 and 100 % of the connections.
    pub fn whole(stacks: Vec<Stack>) -> Self {
        Self {
            in_flight: vec![1, 4, 16],
            active: vec![Share::percent(1.0), Share::percent(10.0), Share::ALL],
            rounds: 6,
            budget: Duration::from_secs(22 * 60) + Duration::from_secs(10 * 60) * others(&stacks),
            ..Self::quick(stacks)
        }
    }

    /// Plans 1 and 4 calls in flight on 10 and 100 % of the connections.
    pub fn quick(stacks: Vec<Stack>) -> Self {
        Self {
            clients: stacks.clone(),
            tls: Vec::new(),
            connections: Vec::new(),
            in_flight: vec![1, 4],
            active: vec![Share::percent(10.0), Share::ALL],
            size: ByteSize(0),
            rounds: 4,
            with_floor: true,
            budget: Duration::from_secs(235) + Duration::from_secs(130) * others(&stacks),
            servers: stacks,
        }
    }

    /// Plans our bare client with an external server.
    pub fn aimed(is_quick: bool) -> Self {
        let target = vec![Stack::target()];
        let options = if is_quick { Self::quick(target) } else { Self::whole(target) };
        Self { clients: Vec::new(), with_floor: false, ..options }
    }
}

/// Returns the number of stacks after the first.
fn others(stacks: &[Stack]) -> u32 {
    u32::try_from(stacks.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Plans the study: the grid by ascending connections, then new connections. At each point the servers and the bare
/// echo take turns in short windows, in alternating order.
pub fn plan(options: &ConnectionsOptions) -> Result<Plan<Window>, PlanError> {
    if options.in_flight.contains(&0) || options.connections.contains(&0) {
        return Err(PlanError::NoLoad);
    }
    let loads = loads(options);
    if loads.is_empty() || options.servers.is_empty() || options.rounds == 0 {
        return Err(PlanError::NothingToMeasure);
    }
    let at_a_time = |compared: Vec<Draft>| in_rounds(&compared, options.rounds);
    let mut drafts: Vec<Draft> = loads.iter().flat_map(|&load| at_a_time(compared(options, load))).collect();
    for tls in [false, true] {
        drafts.extend(at_a_time(arrivals(options, tls)));
    }
    planned(drafts, LENGTH, options.budget)
}

/// Returns the distinct loads. With few connections, different shares can be equal.
fn loads(options: &ConnectionsOptions) -> Vec<Load> {
    let ConnectionsOptions { connections, active, in_flight, .. } = options;
    let actives = connections.iter().flat_map(|&all| active.iter().map(move |share| (all, share.of(all))));
    let load = |(connections, active)| {
        in_flight.iter().map(move |&in_flight| Load { connections, active, in_flight })
    };
    distinct(actives.flat_map(load))
}

/// Returns the drafts that take turns at a load: the bare echo and the servers, driven by the bare client. With all
/// connections active and the fewest calls, the stacks' own clients follow.
fn compared(options: &ConnectionsOptions, load: Load) -> Vec<Draft> {
    let echo = options.with_floor.then(Stack::socket);
    let servers = echo.into_iter().chain(options.servers.iter().cloned());
    let by_bare = servers.map(|server| Pair { client: Stack::bare(), server });
    let has_clients =
        load.active == load.connections && options.in_flight.iter().min() == Some(&load.in_flight);
    let clients = options.clients.iter().filter(|_| has_clients).cloned().map(Pair::own);
    by_bare.chain(clients).map(|pair| draft(options, load, pair)).collect()
}

fn draft(options: &ConnectionsOptions, load: Load, pair: Pair) -> Draft {
    let in_flight = load.active * load.in_flight;
    let unary = Work::Call(CallType::Unary);
    let point = Point {
        active: Some(load.active),
        warmup: TURN_PER_CALL * in_flight,
        ..Point::new(unary, options.size, Transport::Tcp, in_flight, load.connections)
    };
    let weight = (1 + in_flight / IN_FLIGHT_OF_A_LENGTH).min(WEIGHT_MAX);
    Draft { window: Window::of_figures(point, Some(pair), None), weight }
}

/// Returns drafts of new connections from our client: each connects, makes one call and closes.
fn arrivals(options: &ConnectionsOptions, tls: bool) -> Vec<Draft> {
    let servers = if tls { &options.tls } else { &options.servers };
    let of_server = |server: &Stack| {
        let load = Load { connections: 1, active: 1, in_flight: ARRIVING };
        let pair = Pair { client: Stack::ours(), server: server.clone() };
        let mut draft = draft(options, load, pair);
        draft.window.strategy = Some(Strategy::PerCall);
        draft.window.point.active = None;
        draft.window.point.tls = tls;
        draft
    };
    servers.iter().map(of_server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Window as _;

    fn stacks(names: &[&str]) -> Vec<Stack> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn with_all(options: ConnectionsOptions) -> ConnectionsOptions {
        ConnectionsOptions { connections: vec![1, 10, 100, 1000, 10_000], ..options }
    }

    #[test]
    fn all_studies_fit_their_budget() {
        let (alone, all) = (["thalweg"], ["thalweg", "tonic", "grpc-cpp", "grpc-go"]);
        let check = |options: ConnectionsOptions, limit_min: u64| {
            let options = ConnectionsOptions { tls: options.servers.clone(), ..with_all(options) };
            let study = plan(&options).unwrap();
            assert!(study.total() <= options.budget, "{:?}", study.total());
            assert!(options.budget <= Duration::from_secs(60 * limit_min), "{:?}", options.budget);
            for window in &study.windows {
                assert!(window.point.duration >= Duration::from_millis(250), "{window}");
                assert!(window.total() > window.point.warmup + window.point.duration);
            }
        };
        check(ConnectionsOptions::quick(stacks(&alone)), 4);
        check(ConnectionsOptions::quick(stacks(&all)), 11);
        check(ConnectionsOptions::whole(stacks(&alone)), 22);
        check(ConnectionsOptions::whole(stacks(&all)), 52);
        check(ConnectionsOptions::aimed(true), 4);
    }

    #[test]
    fn duplicate_points_are_measured_once_and_stacks_alternate() {
        let options = ConnectionsOptions {
            connections: vec![1, 100],
            rounds: 2,
            ..ConnectionsOptions::whole(stacks(&["thalweg", "tonic"]))
        };
        let loads = loads(&options);
        let of = |connections| loads.iter().filter(|load| load.connections == connections).count();
        assert_eq!((of(1), of(100)), (3, 9));
        let study = plan(&options).unwrap();
        let names = |active, in_flight, round| {
            let of_load = study.windows.iter().filter(|window| {
                let point = &window.point;
                (point.connections, point.active, point.in_flight) == (100, Some(active), in_flight)
                    && window.round == round
            });
            of_load.map(|window| window.pair.as_ref().unwrap().to_string()).collect::<Vec<_>>()
        };
        let mut expected = vec!["bare → socket", "bare → thalweg", "bare → tonic"];
        assert_eq!(names(10, 40, 0), expected);
        expected.reverse();
        assert_eq!(names(10, 40, 1), expected);
        assert_eq!(names(100, 100, 0).len(), 5, "their own clients, too");
        let arriving = study.windows.iter().filter(|it| it.strategy == Some(Strategy::PerCall));
        assert_eq!(arriving.count(), 2 * 2);
    }

    #[test]
    fn empty_plan_is_rejected() {
        let options = ConnectionsOptions::quick(stacks(&["thalweg"]));
        assert_eq!(plan(&options).unwrap_err(), PlanError::NothingToMeasure);
        let zero = ConnectionsOptions { in_flight: vec![0], ..with_all(options) };
        assert_eq!(plan(&zero).unwrap_err(), PlanError::NoLoad);
    }
}
