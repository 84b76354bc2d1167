//! Plan of the sizes study: call types over message sizes and transports.

use std::time::Duration;

use thalweg_measure::size::ByteSize;

use crate::load::gathered::distinct;
use crate::load::{Draft, Pattern, Point, Transport, Window, Work, planned};
use crate::record::CallType;
use crate::stack::Pair;
use crate::study::draft::in_rounds;
use crate::study::rounds::Length;
use crate::study::{Plan, PlanError};

/// Bytes in flight above which a window is longer, and the factor. The first match applies.
const HEAVY: [(u64, u32); 2] = [(32 << 20, 8), (8 << 20, 4)];
/// Reduction of these factors when there are several windows.
const HEAVY_LESS: u32 = 2;

/// Window length for our stack alone. Short windows make a temporary disturbance affect all that is compared alike.
///
/// Each window has its own connection and client process, which gain speed during warm-up. Compared with a full
/// second, rates of 1 KiB streams were lower by:
///
/// - after 60 ms: our bidi stream 16 %, tonic's client stream 15 %
/// - after 120 ms: 8 and 5 %
/// - after 250 ms: 4 and 2 %
/// - grpc-go and gRPC C++: at most 2 % from 120 ms on
const ALONE: Length = Length {
    warmup_min: Duration::from_millis(100),
    warmup_share: 5,
    min: Duration::from_millis(200),
    max: Duration::from_secs(1),
};
/// Window length for a comparison, because some stacks gain speed more slowly than ours.
const COMPARED: Length = Length {
    warmup_min: Duration::from_millis(150),
    warmup_share: 5,
    min: Duration::from_millis(350),
    max: Duration::from_millis(700),
};

/// Sizes of a quick study.
const QUICK_SIZES: [ByteSize; 4] = [ByteSize(0), ByteSize(1 << 10), ByteSize(64 << 10), ByteSize(1_500_000)];

/// Parameters of the sizes study, and its time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct SizesOptions {
    /// Message sizes; the plan sorts them and removes duplicates.
    pub sizes: Vec<ByteSize>,
    /// Kinds of call.
    pub calls: Vec<CallType>,
    /// Transports.
    pub transports: Vec<Transport>,
    /// Operations in flight for overlapping calls or messages. Unary calls are also measured one at a time.
    pub in_flight: u32,
    /// Numbers of connections for each kind of call. Lone calls have one.
    pub connections: Vec<u32>,
    /// Limit of the plan's total time.
    pub budget: Duration,
    /// Windows per point if nothing is compared; an even number, since rounds alternate in direction.
    pub rounds: u32,
    /// Comparison with other pairs; `None` to measure our own stack and the bare socket only.
    pub comparison: Option<ComparedPairs>,
}

/// Compared pairs and their rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedPairs {
    /// Clients and servers, in the order of measuring.
    pub(crate) pairs: Vec<Pair>,
    /// Whether the bare socket takes part.
    pub(crate) with_socket: bool,
    /// Windows per pair and cell; an even number, since rounds alternate in direction.
    pub(crate) rounds: u32,
}

impl SizesOptions {
    /// Plans the whole study: powers of four from 0 B to 4 MiB. It adds 32 KiB, where curves often bend, and 1.5 MB,
    /// where they often peak.
    pub fn whole() -> Self {
        let sizes = [
            0,
            1,
            16,
            64,
            256,
            1 << 10,
            4 << 10,
            16 << 10,
            32 << 10,
            64 << 10,
            256 << 10,
            1 << 20,
            1_500_000,
        ];
        Self {
            sizes: sizes.into_iter().chain([4 << 20]).map(ByteSize).collect(),
            calls: CallType::ALL.to_vec(),
            transports: Transport::ALL.to_vec(),
            in_flight: 16,
            connections: vec![1],
            budget: Duration::from_secs(13 * 60),
            rounds: 6,
            comparison: None,
        }
    }

    /// Plans a quick overview of the same range: four sizes, and fewer windows.
    pub fn quick() -> Self {
        Self { sizes: QUICK_SIZES.to_vec(), budget: Duration::from_secs(115), rounds: 4, ..Self::whole() }
    }

    /// Plans a whole comparison, with fewer sizes because the time is proportional to the number of pairs.
    pub fn whole_comparison(pairs: Vec<Pair>, with_socket: bool) -> Self {
        let sizes =
            [0, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1_500_000, 4 << 20].map(ByteSize);
        Self {
            sizes: sizes.to_vec(),
            budget: budget_for(Duration::from_secs(45 * 60), &pairs),
            comparison: Some(ComparedPairs { pairs, with_socket, rounds: 10 }),
            ..Self::whole()
        }
    }

    /// Plans a quick comparison over the same range: four sizes, and TCP only.
    pub fn quick_comparison(pairs: Vec<Pair>, with_socket: bool) -> Self {
        Self {
            sizes: QUICK_SIZES.to_vec(),
            transports: vec![Transport::Tcp],
            budget: budget_for(Duration::from_secs(420), &pairs),
            comparison: Some(ComparedPairs { pairs, with_socket, rounds: 6 }),
            ..Self::whole()
        }
    }
}

/// Returns the budget for four pairs or fewer, increased in proportion for more.
fn budget_for(four: Duration, pairs: &[Pair]) -> Duration {
    four * u32::try_from(pairs.len()).unwrap_or(u32::MAX).max(4) / 4
}

/// Plans the study of call types over message sizes and transports, with the bare socket as a reference.
///
/// Compared windows are close in time. Sizes are the outer loop, so a machine that slows down affects all lines of a
/// plot alike. An interrupted study has every line up to some size. Compared windows alternate in direction (A B C, C
/// B A, A B C …). They are the pairs of a cell, or for ours alone everything measured at a size.
pub fn plan(options: &SizesOptions) -> Result<Plan<Window>, PlanError> {
    let SizesOptions { calls, transports, in_flight, connections, budget, .. } = options;
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if connections.iter().any(|connections| *connections == 0 || in_flight < connections) {
        return Err(PlanError::NoLoad);
    }
    let loads = loads(calls, *in_flight, connections);
    let cells = cells(&sizes, transports, &loads);
    let (drafts, length) = match &options.comparison {
        None => (alone(options.rounds, &sizes, &cells), ALONE),
        Some(comparison) => (compared(comparison, &cells), COMPARED),
    };
    planned(drafts, length, *budget)
}

/// Work measured at one size over one transport: calls first, then their references.
struct GridCell<'l> {
    size: ByteSize,
    transport: Transport,
    calls: &'l [LineLoad],
    references: Vec<LineLoad>,
}

fn cells<'l>(sizes: &[ByteSize], transports: &[Transport], loads: &'l [LineLoad]) -> Vec<GridCell<'l>> {
    let cell = |size, transport| GridCell { size, transport, calls: loads, references: references(loads) };
    let points = sizes.iter().flat_map(|&size| transports.iter().map(move |&transport| (size, transport)));
    if loads.is_empty() {
        Vec::new()
    } else {
        points.map(|(size, transport)| cell(size, transport)).collect()
    }
}

impl GridCell<'_> {
    /// Returns one draft of each.
    fn alone(&self) -> Vec<Draft> {
        let calls = self.calls.iter().map(|&load| self.draft(load, Some(Pair::ours())));
        calls.chain(self.references.iter().map(|&reference| self.draft(reference, None))).collect()
    }

    fn draft(&self, load: LineLoad, pair: Option<Pair>) -> Draft {
        let LineLoad { work, in_flight, connections } = load;
        let point = Point::new(work, self.size, self.transport, in_flight, connections);
        Draft { window: Window::of_figures(point, pair, None), weight: load.weight(self.size) }
    }

    /// Returns the alternating drafts of each kind of call. A reference joins the first call that it belongs to.
    fn compared(&self, comparison: &ComparedPairs) -> Vec<Vec<Draft>> {
        let mut references = if comparison.with_socket { self.references.clone() } else { Vec::new() };
        let compared = self.calls.iter().map(|&load| {
            let pairs = comparison.pairs.iter().map(|pair| self.draft(load, Some(pair.clone())));
            let reference = references
                .iter()
                .position(|&reference| reference == load.reference())
                .map(|index| references.remove(index));
            pairs.chain(reference.map(|reference| self.draft(reference, None))).collect()
        });
        compared.collect()
    }
}

/// Returns the noise floor first, so that an interrupted study knows its noise, then all calls and transports, size by
/// size.
fn alone(rounds: u32, sizes: &[ByteSize], cells: &[GridCell]) -> Vec<Draft> {
    let of_size = |&size: &ByteSize| {
        let same = cells.iter().filter(move |cell| cell.size == size);
        same.flat_map(GridCell::alone).collect::<Vec<Draft>>()
    };
    let compared = noise_floor(cells).into_iter().chain(sizes.iter().map(of_size));
    compared.flat_map(|compared| in_rounds(&lightened(compared), rounds)).collect()
}

/// Returns the noise floor, then the figures, then the system calls.
fn compared(comparison: &ComparedPairs, cells: &[GridCell]) -> Vec<Draft> {
    let rounds = |compared: Vec<Draft>| in_rounds(&lightened(compared), comparison.rounds);
    let noise = noise_floor(cells).into_iter().flat_map(rounds);
    let figures = cells.iter().flat_map(|cell| cell.compared(comparison)).flat_map(rounds);
    let of_first = cells.iter().take(1).flat_map(|cell| cell.compared(comparison)).flatten();
    let counted = of_first.filter(|draft| draft.window.pair.is_some()).map(Draft::counted);
    noise.chain(figures).chain(counted).collect()
}

/// Reduces the weights of heavy points, because they have several windows.
fn lightened(drafts: Vec<Draft>) -> Vec<Draft> {
    drafts.into_iter().map(|draft| Draft { weight: (draft.weight / HEAVY_LESS).max(1), ..draft }).collect()
}

/// Returns the noise floor over the smallest and the largest size: unary calls, and the last kind of stream.
fn noise_floor(cells: &[GridCell]) -> Vec<Vec<Draft>> {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return Vec::new() };
    let mut few = vec![first];
    // The largest size uses its first transport.
    few.extend(cells.iter().find(|cell| cell.size == last.size && cell.size != first.size));
    let is_unary = |load: &&LineLoad| load.work == Work::Call(CallType::Unary);
    let both = few.into_iter().flat_map(|cell| {
        let unary = cell.calls.iter().filter(is_unary);
        let stream = cell.calls.iter().rfind(|load| !is_unary(load));
        unary.chain(stream).map(|&load| cell.draft(load, Some(Pair::ours())).sides().to_vec())
    });
    both.collect()
}

/// A line of the plots.
#[derive(Clone, Copy, PartialEq)]
struct LineLoad {
    work: Work,
    in_flight: u32,
    connections: u32,
}

/// Returns the lines of the plots. Unary calls are measured alone, for the latency of a lone caller, and with
/// `in_flight` overlapping. Streams are one per connection, pipelined by the driver.
fn loads(calls: &[CallType], in_flight: u32, connections: &[u32]) -> Vec<LineLoad> {
    let of_call = |call| {
        let (work, is_unary) = (Work::Call(call), call == CallType::Unary);
        let lone = (is_unary && in_flight > 1).then_some(LineLoad { work, in_flight: 1, connections: 1 });
        let load = move |&connections: &u32| LineLoad {
            work,
            in_flight: if is_unary { in_flight } else { connections },
            connections,
        };
        lone.into_iter().chain(connections.iter().map(load))
    };
    distinct(CallType::ALL.into_iter().filter(|call| calls.contains(call)).flat_map(of_call))
}

/// Returns the distinct bare sockets for these loads.
fn references(loads: &[LineLoad]) -> Vec<LineLoad> {
    distinct(loads.iter().map(|load| load.reference()))
}

impl LineLoad {
    /// Returns the window's length relative to others. With 16 calls of 4 MiB in flight, the first takes about 0.2 s
    /// to return, and a useful window is several times as long.
    fn weight(self, size: ByteSize) -> u32 {
        let under_way = match self.work {
            Work::Call(CallType::Unary) | Work::Socket(Pattern::Echo) => size.0 * u64::from(self.in_flight),
            _ => size.0,
        };
        HEAVY.into_iter().find(|&(bytes, _)| under_way > bytes).map_or(1, |(_, weight)| weight)
    }

    /// Returns the bare socket to compare with, on one connection.
    fn reference(self) -> Self {
        match self.work {
            Work::Call(call) => {
                let in_flight = if call == CallType::Unary { self.in_flight } else { 1 };
                Self { work: Work::Socket(Pattern::of(call)), in_flight, connections: 1 }
            }
            Work::Socket(_) => self,
        }
    }
}

#[cfg(test)]
mod tests;
