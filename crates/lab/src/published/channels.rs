//! One channel is a bottleneck.

use thalweg_measure::cpus::CpuList;
use thalweg_measure::figures::{count, percent, ratio_text, time, times};

use super::calls::{At, Calls, Cell};
use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;
use super::judgement::{Figure, Judgement, Verdict, is_near};
use super::original::{Extent, Flaw, Original, Run};
use crate::load::{Idle, Strategy, Transport};
use crate::record::CallType;
use crate::report::grid::Field;

pub(super) const ORIGINAL: Original = Original {
    title: "One channel is a bottleneck",
    source: "“The Surprising gRPC Client Bottleneck in Low-Latency Networks”, Evgeniy Ivanov (YDB), July 2025",
    method: &[
        "A closed loop of unary calls by gRPC C++: workers that each wait for their answer, on one channel, on a \
         channel each with equal and with different arguments, and with GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL.",
        "Two machines with many processors and a network of tens of µs between them, then 5 ms added; both ends \
         pinned.",
    ],
    claims: CLAIMS,
    flaws: FLAWS,
    runs,
    tables,
};

const RUN: &str = "channels";
/// The same without processors of their own.
const UNPINNED: &str = "channels-unpinned";

const CPP: &str = "grpc-cpp";
const STACKS: [&str; 4] = [CPP, "grpc-go", "tonic", "thalweg"];
/// A gain that counts.
const GAIN: f64 = 1.15;
/// What was published.
const FACTOR: f64 = 6.0;
const SILENCE_NS: f64 = 175_000.0;
const FAR_NS: u64 = 5_000_000;
/// gRFC A105 opens connections when a server’s limit of streams is reached, which is this where it is small.
const STREAMS: u32 = 100;

fn runs(extent: Extent) -> Vec<Run> {
    let against = "lab channels --against tonic,grpc-cpp,grpc-go --calls unary";
    let all = CpuList::available()
        .map(|all| format!("--client-cpus {all} --server-cpus {all}"))
        .unwrap_or_default();
    let (words, unpinned) = match extent {
        Extent::Quick => (
            "--quick -c 1,64 --round-trips 0s,5ms --strategies adaptive,1,4 --budget 150s",
            "--quick -c 64 --round-trips 0s --strategies adaptive,1 --budget 65s",
        ),
        Extent::Whole => (
            "-c 1,16,64,256 --round-trips 0s,50us,5ms --strategies adaptive,1,4 --budget 16min",
            "-c 64 --round-trips 0s --strategies adaptive,1,4 --budget 3min",
        ),
    };
    vec![
        Run::new(
            RUN,
            "one connection and several, without a delay and over 5 ms, both ends pinned",
            &format!("{against} {words}"),
        ),
        Run::new(
            UNPINNED,
            "the same at one load, client and server on all processors",
            &format!("{against} {all} {unpinned}"),
        ),
    ]
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "one",
        text: "Calls of more workers over one channel of gRPC C++ wait instead of moving faster.",
        published: "latency grows with workers",
        judge: one,
    },
    Claim {
        id: "several",
        text: "Several channels that share no connection give about six times the calls.",
        published: "about 6 ×",
        judge: several,
    },
    Claim {
        id: "shared",
        text: "Channels of equal arguments share one TCP connection.",
        published: "one connection",
        judge: shared,
    },
    Claim {
        id: "silence",
        text: "Between batches the wire is silent for 150 to 200 µs, with calls under way.",
        published: "150–200 µs",
        judge: silence,
    },
    Claim {
        id: "early",
        text: "It happens below 100 calls in flight already.",
        published: "below 100",
        judge: early,
    },
    Claim {
        id: "far",
        text: "Over a network of 5 ms the gain is small.",
        published: "nearly none at 5 ms",
        judge: far,
    },
    Claim {
        id: "pinning",
        text: "Where client and server run matters: pin them to processors.",
        published: "no figure",
        judge: pinning,
    },
];

const FLAWS: &[Flaw] = &[
    Flaw {
        what: "One client",
        instead: "Measured were channels of gRPC C++. Here grpc-go, tonic and ours stand beside them, each with one \
                  connection and with several.",
    },
    Flaw { what: "A number of connections that was asked for", instead: "Here it is counted in the kernel." },
    Flaw {
        what: "A gain of a machine with many processors",
        instead: "Several connections gain what processors are left idle by one. The model below says what more \
                  processors would give at most; `--cores` measures on as many as there are.",
    },
];

/// Empty unary calls of a client at its own stack’s server.
fn cell(
    calls: &Calls<'_>,
    client: &str,
    in_flight: u32,
    round_trip_ns: u64,
    strategy: Strategy,
) -> Result<Cell, String> {
    let server = client.split(':').next().unwrap_or(client);
    let strategy = Some(strategy);
    calls.at(At {
        client,
        server,
        call: CallType::Unary,
        size: 0,
        transport: Transport::Tcp,
        in_flight,
        round_trip_ns,
        strategy,
    })
}

/// The most calls in flight that the claims are about: more workers than the machine has processors, below the limit.
fn busy(calls: &Calls<'_>) -> Result<u32, String> {
    let below = calls.in_flight().into_iter().filter(|&number| number > 1 && number < STREAMS);
    below.max().ok_or_else(|| "no load below 100 calls in flight was measured".to_owned())
}

/// A stack’s one connection, and the fastest of its ways with several.
struct Gain {
    one: Cell,
    several: Cell,
    /// How many times the calls.
    ratio: f64,
    /// It counts, and its interval does not hold 1.
    is_shown: bool,
    /// With its interval, as it is read.
    said: String,
}

fn gain(calls: &Calls<'_>, stack: &str, in_flight: u32, round_trip_ns: u64) -> Result<Gain, String> {
    let one = cell(calls, stack, in_flight, round_trip_ns, Strategy::Fixed(1))?;
    let has_several = |(client, strategy): &(String, Strategy)| {
        let several =
            matches!(strategy, Strategy::Adaptive) || matches!(strategy, Strategy::Fixed(n) if *n > 1);
        several && !client.ends_with(SHARED)
    };
    let ways = calls.ways(stack).into_iter().filter(has_several);
    let measured = ways.filter_map(|(client, way)| cell(calls, &client, in_flight, round_trip_ns, way).ok());
    // A channel that found one connection to be enough has none to compare.
    let measured = measured.filter(|cell| cell.connections.is_none_or(|connections| connections > 1));
    let several = measured.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let several = several.ok_or_else(|| format!("{stack} with several connections was not measured"))?;
    let ratio = several.rate_over(&one);
    let ratio = ratio
        .ok_or_else(|| format!("{stack} has no round in which one connection and several were measured"))?;
    let interval = ratio
        .interval
        .ok_or_else(|| format!("{stack} has too few good windows to tell a gain from chance"))?;
    let is_shown = ratio.ratio >= GAIN && interval.low > 1.0;
    Ok(Gain { one, several, ratio: ratio.ratio, is_shown, said: ratio_text(ratio) })
}

/// Channels whose arguments are equal.
const SHARED: &str = ":shared";

/// How many processors there are, and that one connection may fill a side’s.
fn processors(calls: &Calls<'_>) -> String {
    let cores = calls.results().machine.cores;
    if cores > 2 {
        return format!("This machine has {cores} processors.");
    }
    format!(
        "This machine has {cores} processors, one for each side: a connection that fills it leaves nothing for others \
         to gain. The model below has more."
    )
}

fn one(evidence: &Evidence) -> Result<Judgement, String> {
    /// Of what as many lone callers would make.
    const SCALES: f64 = 0.5;
    let calls = evidence.calls(RUN)?;
    let in_flight = busy(&calls)?;
    let at = |in_flight| cell(&calls, CPP, in_flight, 0, Strategy::Fixed(1));
    let (lone, many) = (at(1)?, at(in_flight)?);
    let share = many.rate_per_s / (lone.rate_per_s * f64::from(in_flight));
    let (short, long) = (lone.p50()?, many.p50()?);
    // That calls wait where as many over several connections move faster is the channel's doing; that they wait where
    // these do not is the processors'.
    let gain = gain(&calls, CPP, in_flight, 0)?;
    let verdict = Verdict::of(share < SCALES && gain.is_shown, long > 2.0 * short);
    let ours = cell(&calls, "thalweg", in_flight, 0, Strategy::Fixed(1))?;
    let cause = format!(
        "{in_flight} callers move {} of what as many lone ones would, and over several connections {} as much. Our \
         client’s one connection moves {} in {} each. {}",
        percent(share),
        gain.said,
        rate(&ours),
        time(ours.p50()?),
        processors(&calls)
    );
    let figures = vec![
        Figure::rate("grpc-cpp, one caller", lone.rate_per_s),
        Figure::rate(format!("grpc-cpp, {in_flight} callers"), many.rate_per_s),
        Figure::time("grpc-cpp, median of one caller", short),
        Figure::time(format!("grpc-cpp, median of {in_flight} callers"), long),
        Figure::ratio(format!("grpc-cpp, {in_flight} callers, several ÷ one"), gain.ratio),
        Figure::rate(format!("thalweg, {in_flight} callers on one connection"), ours.rate_per_s),
    ];
    let said = format!("{} → {}; median {} → {}", rate(&lone), rate(&many), time(short), time(long));
    Ok(Judgement { verdict, ours: said, cause, figures })
}

fn several(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(RUN)?;
    let in_flight = busy(&calls)?;
    let cpp = gain(&calls, CPP, in_flight, 0)?;
    let mut figures = Vec::new();
    let mut others = Vec::new();
    for stack in STACKS {
        let Ok(gain) = gain(&calls, stack, in_flight, 0) else { continue };
        figures.push(Figure::rate(format!("{stack}, one connection"), gain.one.rate_per_s));
        figures.push(Figure::rate(format!("{stack}, the best with several"), gain.several.rate_per_s));
        figures.push(Figure::ratio(format!("{stack}, several ÷ one"), gain.ratio));
        if stack != CPP {
            others.push(format!("{stack} {}", gain.said));
        }
    }
    let cause =
        format!("Others with {in_flight} calls in flight: {}. {}", others.join(", "), processors(&calls));
    let verdict = Verdict::of(cpp.is_shown, is_near(cpp.ratio, FACTOR));
    Ok(Judgement { verdict, ours: format!("grpc-cpp {}", cpp.said), cause, figures })
}

fn shared(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(RUN)?;
    let in_flight = busy(&calls)?;
    let ways = calls.ways(CPP);
    let way = |suffix: &str| -> Result<Cell, String> {
        let mut of = ways.iter().filter(|(client, _)| client.ends_with(suffix));
        let (client, strategy) =
            of.next().ok_or_else(|| format!("gRPC C++ with {suffix} was not measured"))?;
        cell(&calls, client, in_flight, 0, *strategy)
    };
    let (equal, distinct, own) = (way(SHARED)?, way(":distinct")?, way(":own")?);
    let (Some(seen), Some(different), Some(apart)) =
        (equal.connections, distinct.connections, own.connections)
    else {
        return Err("the kernel did not say how many connections there were".to_owned());
    };
    let figures = vec![
        Figure::number("connections of channels with equal arguments", f64::from(seen)),
        Figure::number("connections of channels with different arguments", f64::from(different)),
        Figure::number("connections of channels with a pool of their own", f64::from(apart)),
        Figure::rate("grpc-cpp, equal arguments", equal.rate_per_s),
        Figure::rate("grpc-cpp, different arguments", distinct.rate_per_s),
        Figure::rate("grpc-cpp, a pool of their own", own.rate_per_s),
    ];
    let cause = "Subchannels live in a pool of the process, found by address and arguments; \
                 GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL gives a channel a pool of its own. Counted in the kernel."
        .to_owned();
    let said =
        format!("{seen} of equal arguments, {different} of different ones, {apart} with pools of their own");
    Ok(Judgement {
        verdict: Verdict::of(seen == 1 && different > 1 && apart > 1, true),
        ours: said,
        cause,
        figures,
    })
}

fn silence(evidence: &Evidence) -> Result<Judgement, String> {
    /// Less of the time than this is no silence.
    const SHARE: f64 = 0.1;
    let calls = evidence.calls(RUN)?;
    let in_flight = busy(&calls)?;
    let watched = |stack| calls.wire(stack, Strategy::Fixed(1), in_flight);
    let cpp = watched(CPP).ok_or("the wire between client and server of gRPC C++ was not watched")?;
    let mut figures = vec![
        Figure::new(
            "grpc-cpp, share of the time in which nothing was under way",
            cpp.all.share,
            "",
            percent(cpp.all.share),
        ),
        Figure::time("grpc-cpp, half of the silence is in gaps of at least", middle_of_silence_ns(&cpp.all)),
        Figure::time("grpc-cpp, median gap", cpp.all.p50_ns as f64),
    ];
    let mut others = Vec::new();
    for stack in STACKS.into_iter().filter(|stack| *stack != CPP) {
        let Some(wire) = watched(stack) else { continue };
        let (share, gap) = (wire.all.share, middle_of_silence_ns(&wire.all));
        figures.push(Figure::new(format!("{stack}, share"), share, "", percent(share)));
        figures.push(Figure::time(format!("{stack}, half of the silence is in gaps of at least"), gap));
        others.push(format!("{stack} {} of the time, half of it in gaps of {}", percent(share), time(gap)));
    }
    let gap = middle_of_silence_ns(&cpp.all);
    let is_as_long = is_near(gap, SILENCE_NS);
    let cause = format!(
        "Watched by a hop between both ends with {in_flight} calls in flight on one connection. While a batch is \
         worked on at one end, the other has nothing to send. {}",
        others.join("; ")
    );
    let said = format!(
        "silent for {} of the time, half of it in gaps of {} and more",
        percent(cpp.all.share),
        time(gap)
    );
    Ok(Judgement { verdict: Verdict::of(cpp.all.share >= SHARE, is_as_long), ours: said, cause, figures })
}

/// Half of the silent time lies in gaps as long as this, or longer, ns. Most gaps are short ones between packets of a
/// batch, and little of the time.
fn middle_of_silence_ns(idle: &Idle) -> f64 {
    let time = |&(bound, gaps): &(u64, u64)| bound as f64 * gaps as f64;
    let half = idle.buckets.iter().map(time).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let middle = idle.buckets.iter().find(|bucket| {
        sum += time(bucket);
        sum >= half
    });
    middle.map_or(0.0, |&(bound, _)| bound as f64)
}

fn early(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(RUN)?;
    let mut figures = Vec::new();
    let mut first = None;
    let below = calls.in_flight().into_iter().filter(|number| *number > 1 && *number < STREAMS);
    let mut most: f64 = 0.0;
    for in_flight in below {
        let Ok(cpp) = gain(&calls, CPP, in_flight, 0) else { continue };
        figures.push(Figure::ratio(format!("grpc-cpp, several ÷ one, {in_flight} in flight"), cpp.ratio));
        most = most.max(cpp.ratio);
        if cpp.is_shown && first.is_none() {
            first = Some(in_flight);
        }
    }
    if figures.is_empty() {
        return Err("no load between one call and 100 was measured".to_owned());
    }
    let cause = format!(
        "A server allows 100 streams of a connection or more, and most have no limit: gRPC C++’s has none. {}",
        processors(&calls)
    );
    let said = match first {
        Some(in_flight) => format!("a gain from {in_flight} calls in flight on"),
        None => format!("no gain: {} at most", times(most)),
    };
    Ok(Judgement { verdict: Verdict::of(first.is_some(), true), ours: said, cause, figures })
}

fn far(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(RUN)?;
    let in_flight = busy(&calls)?;
    let (near, far) = (gain(&calls, CPP, in_flight, 0)?, gain(&calls, CPP, in_flight, FAR_NS)?);
    let figures = vec![
        Figure::ratio("grpc-cpp, several ÷ one, no delay", near.ratio),
        Figure::ratio("grpc-cpp, several ÷ one, 5 ms", far.ratio),
        Figure::rate("grpc-cpp, one connection, 5 ms", far.one.rate_per_s),
    ];
    let cause = format!(
        "With {in_flight} calls in flight over 5 ms a connection carries {} calls a second at most, far from what it \
         can do: calls wait for the network.",
        count(f64::from(in_flight) / (FAR_NS as f64 / 1e9))
    );
    let said = format!("{} over 5 ms, {} without", far.said, near.said);
    if !near.is_shown {
        return Err(format!(
            "without a delay no gain is shown here ({}), so there is none to vanish",
            near.said
        ));
    }
    let verdict = Verdict::of(far.ratio < near.ratio, far.ratio < GAIN);
    Ok(Judgement { verdict, ours: said, cause, figures })
}

fn pinning(evidence: &Evidence) -> Result<Judgement, String> {
    /// A difference that counts.
    const DIFFERS: f64 = 1.15;
    let (pinned, free) = (evidence.calls(RUN)?, evidence.calls(UNPINNED)?);
    let in_flight = busy(&free)?;
    let mut figures = Vec::new();
    let mut said = Vec::new();
    let mut cpp = None;
    for stack in STACKS {
        let of = |calls| cell(calls, stack, in_flight, 0, Strategy::Fixed(1));
        let (Ok(pinned), Ok(free)) = (of(&pinned), of(&free)) else { continue };
        let ratio = pinned.rate_per_s / free.rate_per_s;
        figures.push(Figure::rate(format!("{stack}, pinned"), pinned.rate_per_s));
        figures.push(Figure::rate(format!("{stack}, on all processors"), free.rate_per_s));
        said.push(format!("{stack} {}", times(ratio)));
        if stack == CPP {
            cpp = Some(ratio);
        }
    }
    let ratio = cpp.ok_or("gRPC C++ was not measured both ways")?;
    let cause = format!(
        "Pinned ÷ on all processors, one connection with {in_flight} calls in flight, each in a study of its own. \
         Where both ends may run anywhere, the kernel moves their threads between processors, and a client of many \
         threads takes the server’s."
    );
    Ok(Judgement { verdict: Verdict::of(ratio > DIFFERS, true), ours: said.join(", "), cause, figures })
}

fn rate(cell: &Cell) -> String {
    format!("{}/s", count(cell.rate_per_s))
}

fn tables(evidence: &Evidence) -> Vec<Table> {
    let Ok(calls) = evidence.calls(RUN) else { return Vec::new() };
    vec![ways(&calls), model(&calls)]
}

/// All ways of all stacks, at all loads.
fn ways(calls: &Calls<'_>) -> Table {
    let mut table = Table::new(
        "One connection and several",
        "Empty unary calls in a closed loop; connections are those that the kernel saw.",
        &["Stack", "Connections by", "Seen", "In flight", "Added round trip", "Calls/s", "Median", "p99"],
    );
    for stack in STACKS {
        for (client, way) in calls.ways(stack) {
            for in_flight in calls.in_flight() {
                for round_trip_ns in calls.round_trips_ns() {
                    let Ok(cell) = cell(calls, &client, in_flight, round_trip_ns, way) else { continue };
                    let latency = |of: fn(&thalweg_measure::distribution::Latency) -> u64| {
                        cell.latency.as_ref().map(|it| of(it) as f64)
                    };
                    table.rows.push(vec![
                        Field::words(&client),
                        Field::words(way.to_string()),
                        Field::figure(cell.connections.map(f64::from), |n| format!("{n:.0}")),
                        Field::figure(Some(f64::from(in_flight)), |n| format!("{n:.0}")),
                        Field::figure(Some(round_trip_ns as f64), |ns| {
                            if ns > 0.0 { time(ns) } else { "none".to_owned() }
                        }),
                        Field::figure(Some(cell.rate_per_s), count),
                        Field::figure(latency(|it| it.p50), time),
                        Field::figure(latency(|it| it.p99), time),
                    ]);
                }
            }
        }
    }
    table
}

/// What more processors give at most: a connection is worked on by one thread at a time at either end, what it costs
/// there is what was measured, and connections do not hold up each other.
fn model(calls: &Calls<'_>) -> Table {
    const PROCESSORS: [u32; 4] = [2, 4, 8, 16];
    let mut table = Table::new(
        "More processors, by a model",
        "Calls per second at most with as many connections as a side has processors, half of them each: processor time \
         of a call on one connection as measured here, a connection worked on by one thread at a time at either end, \
         and connections that do not hold up each other. What a stack shares between connections (locks, a poller, \
         caches) makes it less. In brackets, times one connection.",
        &["Stack", "Client, a call", "Server, a call", "One connection", "2 processors", "4", "8", "16"],
    );
    let Ok(in_flight) = busy(calls) else { return table };
    for stack in STACKS {
        let Ok(one) = cell(calls, stack, in_flight, 0, Strategy::Fixed(1)) else { continue };
        let (client, server) = one.processor_ns;
        let slower = client.max(server);
        if slower <= 0.0 {
            continue;
        }
        // With several processors for a side more than one thread works on a connection.
        let most = (1e9 / slower).max(one.rate_per_s);
        let mut row = vec![
            Field::words(stack),
            Field::figure(Some(client), time),
            Field::figure(Some(server), time),
            Field::figure(Some(one.rate_per_s), count),
        ];
        row.extend(PROCESSORS.map(|processors| {
            let each = f64::from(processors / 2);
            Field::figure(Some(most * each), |rate| {
                format!("{} ({})", count(rate), times(rate / one.rate_per_s))
            })
        }));
        table.rows.push(row);
    }
    table
}
