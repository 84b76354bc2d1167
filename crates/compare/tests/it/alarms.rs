//! Measures false alarms for equal servers, and how often a slower one is found, over many simulated comparisons.

use thalweg_compare::{
    Calls, Cell, Conditions, Figure, Figures, Options, Pairing, Report, Round, Side, compare,
};

use crate::support::options;

/// Rounds of a comparison, as by default.
const ROUNDS: usize = 10;
/// Calls per window.
const CALLS: u64 = 2000;
/// Comparisons of equal servers per noise.
const EQUAL: usize = 400;
/// Comparisons with a slower server per noise.
const SLOWER: usize = 200;

/// Noise in the windows of both servers, as the logarithm of the slowdown.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// 1 %, independent between windows: handlers that sleep, on a quiet machine.
    Slight,
    /// 2 %, independent.
    Quiet,
    /// 10 %, independent.
    Loud,
    /// 10 %, 80 % of which carries over from the previous window: other programs run now and then.
    Correlated,
    /// Student's t with three degrees of freedom: occasional outliers.
    HeavyTails,
    /// One window in ten takes up to twice as long.
    Stalls,
}

impl Noise {
    const ALL: [Self; 6] =
        [Self::Slight, Self::Quiet, Self::Loud, Self::Correlated, Self::HeavyTails, Self::Stalls];

    fn next(self, before: f64, random: &mut Random) -> f64 {
        match self {
            Self::Slight => 0.01 * random.normal(),
            Self::Quiet => 0.02 * random.normal(),
            Self::Loud => 0.1 * random.normal(),
            Self::Correlated => 0.8 * before + 0.06 * random.normal(),
            Self::HeavyTails => {
                let chi_squared: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                0.03 * random.normal() / (chi_squared / 3.0).sqrt()
            }
            Self::Stalls => {
                let stall = if random.unit() < 0.1 { random.unit() * std::f64::consts::LN_2 } else { 0.0 };
                0.02 * random.normal() + stall
            }
        }
    }
}

/// Failures, the same for both servers.
#[derive(Clone, Copy, Debug)]
enum Failing {
    /// One call in a thousand, independently.
    Rarely,
    /// One window in fifteen loses up to 40 % of its calls.
    InBursts,
}

impl Failing {
    fn calls(self, random: &mut Random) -> Calls {
        let failed = match self {
            Self::Rarely => (0..CALLS).filter(|_| random.unit() < 0.001).count() as u64,
            Self::InBursts if random.unit() < 1.0 / 15.0 => (CALLS as f64 * 0.4 * random.unit()) as u64,
            Self::InBursts => 0,
        };
        Calls { ok: CALLS - failed, failed, dropped: 0 }
    }
}

/// Returns a window whose calls take `slower` times as long. Its figures vary together, the tail most.
fn window(number: u32, slower: f64, tail: f64, calls: Calls) -> Round {
    let figures = Figures::default()
        .with(Figure::Rate, Some(8000.0 / slower))
        .with(Figure::Mean, Some(1e6 * slower * tail.powf(0.2)))
        .with(Figure::P50, Some(0.9e6 * slower))
        .with(Figure::P90, Some(1.5e6 * slower * tail.powf(0.3)))
        .with(Figure::P95, Some(2e6 * slower * tail.powf(0.6)))
        .with(Figure::P99, Some(3e6 * slower * tail))
        .with(Figure::ClientCpu, Some(5e3 * slower.sqrt()))
        .with(Figure::ServerCpu, Some(4e3 * slower.sqrt()));
    Round { number, figures, calls, ..Round::default() }
}

/// Compares two servers in windows A B, B A, A B …; B is slower by the factor `slower`.
fn compared(noise: Noise, failing: Failing, slower: f64, random: &mut Random) -> Report {
    let (mut rounds, mut before) = ([Vec::new(), Vec::new()], 0.0);
    for round in 0..ROUNDS {
        for side in [round % 2, 1 - round % 2] {
            before = noise.next(before, random);
            let tail = (0.15 * random.normal()).exp();
            let factor = if side == 1 { slower } else { 1.0 };
            rounds[side].push(window(round as u32, factor * before.exp(), tail, failing.calls(random)));
        }
    }
    let [a, b] = rounds.map(|rounds| Side {
        name: "server".to_owned(),
        cells: vec![Cell { conditions: Conditions::default(), is_open: false, rounds, request_bytes: None }],
        machines: Vec::new(),
        has_unknown_machine: false,
        versions: None,
        notes: Vec::new(),
        origin: String::new(),
    });
    compare(&a, &b, Pairing::Paired, &Options { fail_on: None, ..options() }).unwrap()
}

/// The limit is 2 % of alarms. Measured: at most one in 400, and 2 % of headlines that name any figure.
#[test]
fn equal_servers_are_rarely_called_worse() {
    for noise in Noise::ALL {
        for failing in [Failing::Rarely, Failing::InBursts] {
            let mut random = Random(0x5eed);
            let (mut alarms, mut named) = (0, 0);
            for _ in 0..EQUAL {
                let report = compared(noise, failing, 1.0, &mut random);
                alarms += usize::from(!report.failures.is_empty());
                let headline = report.headline();
                named += usize::from(headline.contains("worse") || headline.contains("better"));
            }
            let share = |count: usize| count as f64 / EQUAL as f64;
            println!("{noise:?}, {failing:?}: alarms {:.4}, named {:.4}", share(alarms), share(named));
            assert!(share(alarms) <= 0.02, "{noise:?}, {failing:?}: {alarms} alarms");
            assert!(share(named) <= 0.05, "{noise:?}, {failing:?}: {named} headlines");
        }
    }
}

/// 50 ms against 54 ms, on a machine quiet enough for a margin of 5 %.
#[test]
fn handler_slower_by_8_percent_is_found() {
    for failing in [Failing::Rarely, Failing::InBursts] {
        let mut random = Random(0x5eed);
        let found = (0..SLOWER)
            .filter(|_| {
                let report = compared(Noise::Slight, failing, 1.08, &mut random);
                report.headline().starts_with("worse, ") && !report.failures.is_empty()
            })
            .count();
        println!("{failing:?}: found {found} of {SLOWER}");
        assert!(found as f64 >= 0.9 * SLOWER as f64, "{failing:?}: {found} of {SLOWER}");
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// Returns a uniform value in (0, 1].
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((bits ^ (bits >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a standard normal value (Box–Muller).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
