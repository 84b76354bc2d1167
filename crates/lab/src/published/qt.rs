//! Qt GRPC beside gRPC C++, over message sizes.

use thalweg_measure::figures::{count, percent, throughput, time, times};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;

use super::calls::{At, Calls, Cell};
use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;
use super::judgement::{Figure, Judgement, Verdict, is_near};
use super::original::{Extent, Flaw, Original, Run};
use crate::load::Transport;
use crate::record::CallType;
use crate::report::grid::Field;

pub(super) const ORIGINAL: Original = Original {
    title: "Qt GRPC against gRPC C++",
    source: "“Qt GRPC: Tips, Tricks & Sweet Spots”, the blog of Qt, July 2025",
    method: &[
        "Clients on Qt GRPC and on gRPC C++, one server on gRPC C++ for both, over UNIX sockets.",
        "Payloads from nothing to 4 MiB; unary calls, client, server and bidi streams; averages.",
    ],
    claims: CLAIMS,
    flaws: FLAWS,
    runs,
    tables,
};

/// Both clients, and ours, at the server of gRPC C++.
const AT_CPP: &str = "qt-at-cpp";
/// The same at our server.
const AT_OURS: &str = "qt-at-ours";
/// The same over TCP, which Qt’s client is used over, too.
const OVER_TCP: &str = "qt-over-tcp";

const QT: &str = "qt";
const CPP: &str = "grpc-cpp";
const OURS: &str = "thalweg";

const KIB: u64 = 1 << 10;
/// What was published as the size of the highest throughput.
const PEAK: u64 = 1_500_000;

fn runs(extent: Extent) -> Vec<Run> {
    let against = "lab sizes --against grpc-cpp,qt";
    // With `--quick` a size has six rounds and without it ten: more sizes say more.
    let (at_cpp, at_ours, over_tcp) = match extent {
        Extent::Quick => (
            "--sizes 0,1KiB,32KiB,64KiB,1.5MB,4MiB --budget 245s",
            "--calls unary,client-stream,server-stream --sizes 0,64KiB --budget 85s",
            "--calls unary --sizes 1KiB,32KiB --budget 35s",
        ),
        Extent::Whole => (
            "--sizes 0,64,1KiB,4KiB,16KiB,32KiB,64KiB,256KiB,512KiB,1MiB,1.5MB,4MiB --budget 13min",
            "--sizes 0,1KiB,32KiB,64KiB,1.5MB,4MiB --budget 7min",
            "--calls unary,client-stream --sizes 0,1KiB,32KiB,64KiB,256KiB --budget 4min",
        ),
    };
    let run = |name, about, server: &str, transport: &str, words: &str| {
        Run::new(
            name,
            about,
            &format!("{against} --server {server} --transports {transport} --quick -c 1 {words}"),
        )
    };
    vec![
        run(
            AT_CPP,
            "as published: both clients, and ours, at gRPC C++’s server, over UNIX sockets",
            CPP,
            "uds",
            at_cpp,
        ),
        run(AT_OURS, "the same clients at our server", OURS, "uds", at_ours),
        run(OVER_TCP, "the same clients over TCP, at gRPC C++’s server", CPP, "tcp", over_tcp),
    ]
}

const CLAIMS: &[Claim] = &[
    Claim { id: "flat", text: "Latency is flat up to about 64 KB.", published: "to 64 KB", judge: flat },
    Claim {
        id: "small",
        text: "Qt GRPC excels at small payloads: 1.2 M messages a second in client streams.",
        published: "1.2 M messages/s",
        judge: small,
    },
    Claim {
        id: "large",
        text: "Above about 32 KB Qt GRPC falls behind gRPC C++.",
        published: "above 32 KB",
        judge: large,
    },
    Claim {
        id: "peak",
        text: "gRPC C++ moves most bytes with messages of about 1.5 MB.",
        published: "7 GB/s at 1.5 MB",
        judge: peak,
    },
    Claim {
        id: "sweet",
        text: "Small messages are for latency, 1.5 MB for throughput.",
        published: "two sweet spots",
        judge: sweet,
    },
    Claim {
        id: "split",
        text: "A bidi stream gains throughput when it is split into a client stream and a server stream.",
        published: "a gain",
        judge: split,
    },
    Claim {
        id: "batches",
        text: "A unary call is sent at once, where streams batch messages.",
        published: "no figure",
        judge: batches,
    },
];

const FLAWS: &[Flaw] = &[
    Flaw {
        what: "Lock-step beside pipelined streams",
        instead: "A unary call waits for its answer and a stream does not, so calls per second of the one are no \
                  messages per second of the other. Here lone calls have latencies, streams have rates, and only \
                  what does the same work is compared.",
    },
    Flaw {
        what: "Averages without percentiles",
        instead: "The table of lone calls has the mean beside the median, 99 % and 99.9 %.",
    },
    Flaw {
        what: "A client stream that is buffered whole",
        instead: "Qt GRPC takes all messages of a client stream into its memory and says nothing of what was sent. \
                  How fast it takes them is no throughput. Here a stream counts when its server has answered with \
                  the number that came; the peer’s streams end after 32 MiB or 16,384 messages, because all of a \
                  stream is held in memory until then.",
    },
    Flaw {
        what: "UNIX sockets alone",
        instead: "Over TCP Qt’s socket delays small writes (Nagle’s algorithm) and Qt GRPC has no option for it. The \
                  table of TCP says what that costs.",
    },
];

fn flat(evidence: &Evidence) -> Result<Judgement, String> {
    /// As long as an empty call, and what may not be called flat any more.
    const FLAT: f64 = 1.5;
    const STEEP: f64 = 3.0;
    let calls = evidence.calls(AT_CPP)?;
    let mut figures = Vec::new();
    let mut worst: f64 = 0.0;
    let mut said = Vec::new();
    for client in [QT, CPP] {
        let empty = calls.at(At::lone(client, CPP, 0))?;
        let full = calls.at(At::lone(client, CPP, 64 * KIB))?;
        let ratio = full.p50()? / empty.p50()?;
        worst = worst.max(ratio);
        figures.push(Figure::time(format!("{client}, 0 B"), empty.p50()?));
        figures.push(Figure::time(format!("{client}, 64 KiB"), full.p50()?));
        said.push(format!("{client} {} → {} ({})", time(empty.p50()?), time(full.p50()?), times(ratio)));
    }
    let bend = |client| -> Result<Option<u64>, String> {
        let empty = calls.at(At::lone(client, CPP, 0))?.p50()?;
        let is_over = |&size: &u64| {
            calls
                .at(At::lone(client, CPP, size))
                .and_then(|cell| cell.p50())
                .is_ok_and(|p50| p50 > FLAT * empty)
        };
        Ok(calls.sizes().into_iter().find(is_over))
    };
    let mut bends = Vec::new();
    for client in [QT, CPP] {
        bends.push(match bend(client)? {
            Some(size) => format!("{client} at {}", ByteSize(size)),
            None => format!("{client} nowhere"),
        });
    }
    let verdict = if worst <= FLAT {
        Verdict::Confirmed
    } else if worst <= STEEP {
        Verdict::InDirection
    } else {
        Verdict::NotConfirmed
    };
    let cause = format!(
        "Of a small call most is waking up and system calls, which do not grow with the message. The first measured \
         size whose median is more than {} of the empty call’s: {}.",
        times(FLAT),
        bends.join(", ")
    );
    Ok(Judgement { verdict, ours: said.join("; "), cause, figures })
}

/// It holds of the ratio, and of both ends of its interval.
fn is_shown(ratio: Option<Ratio>, holds: fn(f64) -> bool) -> bool {
    let ends = ratio.and_then(|ratio| Some([ratio.ratio, ratio.interval?.low, ratio.interval?.high]));
    ends.is_some_and(|ends| ends.into_iter().all(holds))
}

fn small(evidence: &Evidence) -> Result<Judgement, String> {
    const PUBLISHED: f64 = 1.2e6;
    let calls = evidence.calls(AT_CPP)?;
    let at = |client| calls.at(At::stream(client, CPP, CallType::ClientStream, 0));
    let (qt, cpp, ours) = (at(QT)?, at(CPP)?, at(OURS).ok());
    let ratio = qt.rate_over(&cpp).map_or(qt.rate_per_s / cpp.rate_per_s, |ratio| ratio.ratio);
    let is_fast = is_near(qt.rate_per_s, PUBLISHED) || qt.rate_per_s > PUBLISHED;
    let is_faster = is_shown(qt.rate_over(&cpp), |ratio| ratio > 1.0);
    let beside = ours.as_ref().map(|ours| {
        format!(" Our client at the same server makes {} of {} each.", rate(ours), time(ours.processor_ns.0))
    });
    let cause = format!(
        "Of processor time a message takes Qt’s client {}, and gRPC C++’s {}.{} What was published may be how fast Qt \
         takes messages into its memory; counted here is what the server has answered for.",
        time(qt.processor_ns.0),
        time(cpp.processor_ns.0),
        beside.unwrap_or_default()
    );
    let mut figures = vec![
        Figure::rate("qt, client stream of 0 B", qt.rate_per_s),
        Figure::rate("grpc-cpp, client stream of 0 B", cpp.rate_per_s),
        Figure::ratio("qt ÷ grpc-cpp", ratio),
    ];
    figures.extend(ours.map(|ours| Figure::rate("thalweg, client stream of 0 B", ours.rate_per_s)));
    let said = format!("qt {}, grpc-cpp {}: {}", rate(&qt), rate(&cpp), times(ratio));
    Ok(Judgement { verdict: Verdict::of(is_faster, is_fast), ours: said, cause, figures })
}

/// Of all sizes above 32 KiB and all kinds of call.
fn large(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(AT_CPP)?;
    let (mut behind, mut all, mut figures) = (0_usize, 0_usize, Vec::new());
    let (mut small_behind, mut small, mut missing) = (0_usize, 0_usize, 0_usize);
    for size in calls.sizes() {
        for call in CallType::ALL {
            let at = |client| calls.at(At::stream(client, CPP, call, size)).ok();
            let Some(ratio) = at(QT).zip(at(CPP)).and_then(|(qt, cpp)| qt.rate_over(&cpp)) else {
                missing += 1;
                continue;
            };
            let is_behind = is_shown(Some(ratio), |ratio| ratio < 1.0);
            if size <= 32 * KIB {
                small += 1;
                small_behind += usize::from(is_behind);
            } else {
                all += 1;
                behind += usize::from(is_behind);
                let name = format!("qt ÷ grpc-cpp, {call} of {}", ByteSize(size));
                figures.push(Figure::ratio(name, ratio.ratio));
            }
        }
    }
    if all <= missing {
        return Err(format!("above 32 KiB {all} cells were measured by both, and {missing} of all were not"));
    }
    let median =
        thalweg_measure::statistics::median(figures.iter().map(|figure| figure.value)).unwrap_or_default();
    let is_crossed = 2 * small_behind < small;
    let verdict = Verdict::of(2 * behind > all, behind == all && is_crossed);
    let cost = |client| {
        let cell = calls.at(At::stream(client, CPP, CallType::ClientStream, 64 * KIB)).ok()?;
        Some(time(cell.processor_ns.0))
    };
    let costs = cost(QT).zip(cost(CPP)).map(|(qt, cpp)| {
        format!(" A message of 64 KiB of a client stream takes Qt’s client {qt} of processor time, gRPC C++’s {cpp}.")
    });
    let cause =
        format!("Up to 32 KiB it is behind in {small_behind} of {small} cells.{}", costs.unwrap_or_default());
    let said = format!("behind in {behind} of {all} cells above 32 KiB, {} in the middle", times(median));
    Ok(Judgement { verdict, ours: said, cause, figures })
}

fn peak(evidence: &Evidence) -> Result<Judgement, String> {
    const PUBLISHED: f64 = 7e9;
    let calls = evidence.calls(AT_CPP)?;
    let (call, size, most) = fastest(&calls, CPP).ok_or("no stream of gRPC C++ was measured")?;
    let ours = fastest(&calls, OURS);
    if calls
        .sizes()
        .last()
        .is_none_or(|&largest| largest <= PEAK || fastest_of(&calls, CPP, largest).is_none())
    {
        return Err("nothing larger than 1.5 MB was measured, so that no peak can be seen".to_owned());
    }
    let is_there = is_near(size as f64, PEAK as f64);
    let mut figures = vec![
        Figure::throughput(format!("grpc-cpp, {call} of {}", ByteSize(size)), most),
        Figure::bytes("grpc-cpp, size of the most", size as f64),
    ];
    let beside = ours.map(|(call, size, most)| {
        figures.push(Figure::throughput(format!("thalweg, {call} of {}", ByteSize(size)), most));
        format!(" Our client at the same server: {} by {call} of {}.", throughput(most), ByteSize(size))
    });
    let cause = format!(
        "Larger messages have less overhead for each byte, until they no longer fit into the processor’s caches while \
         they are copied. How many bytes a machine copies in a second decides the rest: 7 GB/s are of the machine \
         that was published.{}",
        beside.unwrap_or_default()
    );
    let said = format!("{} by {call} of {}", throughput(most), ByteSize(size));
    Ok(Judgement { verdict: Verdict::of(is_there, is_near(most, PUBLISHED)), ours: said, cause, figures })
}

/// The same of messages of this size.
fn fastest_of(calls: &Calls<'_>, client: &str, size: u64) -> Option<f64> {
    let streams = [CallType::ClientStream, CallType::ServerStream];
    let cells = streams.into_iter().filter_map(|call| calls.at(At::stream(client, CPP, call, size)).ok());
    cells.map(|cell| cell.rate_per_s * size as f64).reduce(f64::max)
}

/// The stream one way with the highest throughput.
fn fastest(calls: &Calls<'_>, client: &str) -> Option<(CallType, u64, f64)> {
    let streams = [CallType::ClientStream, CallType::ServerStream];
    let all = streams.into_iter().flat_map(|call| calls.sizes().into_iter().map(move |size| (call, size)));
    let measured = all.filter_map(|(call, size)| {
        let cell = calls.at(At::stream(client, CPP, call, size)).ok()?;
        Some((call, size, cell.rate_per_s * size as f64))
    });
    measured.max_by(|a, b| a.2.total_cmp(&b.2))
}

fn sweet(evidence: &Evidence) -> Result<Judgement, String> {
    /// As good as the best.
    const AS_GOOD: f64 = 0.8;
    let calls = evidence.calls(AT_CPP)?;
    let (_, best_size, best) = fastest(&calls, CPP).ok_or("no stream of gRPC C++ was measured")?;
    let at_peak = fastest_of(&calls, CPP, PEAK).ok_or("no stream of 1.5 MB was measured")?;
    let (lone, lone_large) =
        (calls.at(At::lone(CPP, CPP, 0))?.p50()?, calls.at(At::lone(CPP, CPP, PEAK))?.p50()?);
    let share = at_peak / best;
    let verdict = Verdict::of(lone < lone_large, share >= AS_GOOD);
    let cause = format!(
        "A lone call of 1.5 MB takes {} as long as an empty one. The most bytes moved at {}; 1.5 MB has {} of that.",
        times(lone_large / lone),
        ByteSize(best_size),
        percent(share)
    );
    let figures = vec![
        Figure::time("grpc-cpp, lone call of 0 B", lone),
        Figure::time("grpc-cpp, lone call of 1.5 MB", lone_large),
        Figure::throughput("grpc-cpp, streams of 1.5 MB", at_peak),
        Figure::throughput("grpc-cpp, the most", best),
    ];
    let said = format!("{} lone and empty; {} by streams of 1.5 MB", time(lone), throughput(at_peak));
    Ok(Judgement { verdict, ours: said, cause, figures })
}

/// A bidi stream moves a message each way. Split, one thread divides its time between the two directions: as many
/// messages each way take what they take one after the other.
fn split(evidence: &Evidence) -> Result<Judgement, String> {
    /// A gain that counts.
    const GAIN: f64 = 1.1;
    let calls = evidence.calls(AT_CPP)?;
    let (mut gains, mut figures, mut said) = ([0, 0], Vec::new(), Vec::new());
    for client in [QT, CPP] {
        let mut ratios = Vec::new();
        for size in calls.sizes() {
            let at = |call| calls.at(At::stream(client, CPP, call, size));
            let (Ok(bidi), Ok(up), Ok(down)) =
                (at(CallType::BidiStream), at(CallType::ClientStream), at(CallType::ServerStream))
            else {
                continue;
            };
            let apart = 1.0 / (1.0 / up.rate_per_s + 1.0 / down.rate_per_s);
            let ratio = apart / bidi.rate_per_s;
            gains[usize::from(ratio > GAIN)] += 1;
            ratios.push(ratio);
            figures.push(Figure::ratio(
                format!("{client}, {}: split ÷ bidi, by a model", ByteSize(size)),
                ratio,
            ));
        }
        if let (Some(least), Some(most)) =
            (ratios.iter().copied().reduce(f64::min), ratios.iter().copied().reduce(f64::max))
        {
            said.push(format!("{client} {} to {}", times(least), times(most)));
        }
    }
    let [without, with] = gains;
    if with + without == 0 {
        return Err("no size was measured by all kinds of stream".to_owned());
    }
    // Told from streams one way that were measured one after the other, it is never more than a direction.
    let verdict = Verdict::of(with > without, false);
    let cause = format!(
        "A gain at {with} of {} sizes, by a model: of streams one way, measured by themselves, a client that divides \
         its time between both moves so many messages each way. On processors of their own they move more.",
        with + without
    );
    Ok(Judgement { verdict, ours: said.join("; "), cause, figures })
}

fn batches(evidence: &Evidence) -> Result<Judgement, String> {
    let calls = evidence.calls(AT_CPP)?;
    let mut figures = Vec::new();
    let mut said = Vec::new();
    let (mut there, mut all) = (0, 0);
    for client in [QT, CPP, OURS] {
        let of = |call| calls.system_calls(client, CPP, call, 1);
        let (Some(unary), Some(stream)) = (of(CallType::Unary), of(CallType::ClientStream)) else { continue };
        let (unary, stream) = (unary.client_per_operation, stream.client_per_operation);
        figures.push(Figure::number(format!("{client}, system calls of a unary call"), unary));
        figures
            .push(Figure::number(format!("{client}, system calls of a message of a client stream"), stream));
        if client != OURS {
            all += 1;
            there += usize::from(unary >= 1.0 && stream < 1.0);
        }
        said.push(format!("{client} {unary:.1} and {stream:.3}"));
    }
    if all == 0 {
        // Where the stacks themselves were measured, it was strace.
        for client in [QT, CPP] {
            calls.at(At::lone(client, CPP, 0))?;
        }
        return Err("system calls could not be counted (strace)".to_owned());
    }
    let verdict = match there {
        0 => Verdict::NotConfirmed,
        some if some == all => Verdict::Confirmed,
        _ => Verdict::InDirection,
    };
    let cause = "System calls of the client for an operation, of empty messages. A call that waits for its answer has \
                 nothing to be packed with; a stream’s messages go together into one write where the stack packs them."
        .to_owned();
    Ok(Judgement { verdict, ours: format!("{} (unary, stream)", said.join("; ")), cause, figures })
}

fn rate(cell: &Cell) -> String {
    format!("{}/s", count(cell.rate_per_s))
}

fn tables(evidence: &Evidence) -> Vec<Table> {
    vec![lone_calls(evidence), streams(evidence), over_tcp(evidence)]
}

/// Lone calls of the three clients at both servers, with percentiles.
fn lone_calls(evidence: &Evidence) -> Table {
    let mut table = Table::new(
        "Lone calls",
        "One unary call at a time over a UNIX socket.",
        &["Server", "Size", "Client", "Mean", "Median", "p99", "p99.9"],
    );
    for (run, server) in [(AT_CPP, CPP), (AT_OURS, OURS)] {
        let Ok(calls) = evidence.calls(run) else { continue };
        for size in calls.sizes() {
            for client in [QT, CPP, OURS] {
                let Ok(cell) = calls.at(At::lone(client, server, size)) else { continue };
                let Some(latency) = cell.latency else { continue };
                let [p50, p99, p99_9] = [latency.p50, latency.p99, latency.p99_9].map(|ns| ns as f64);
                let mut row = vec![Field::words(server), size_field(size), Field::words(client)];
                // A percentile of fewer calls than it takes to have one above it is the longest call.
                let of = |least: u64, ns: f64| Field::figure((cell.operations >= least).then_some(ns), time);
                row.extend([of(1, latency.mean), of(1, p50), of(100, p99), of(1000, p99_9)]);
                table.rows.push(row);
            }
        }
    }
    table
}

/// Streams of the three clients at both servers.
fn streams(evidence: &Evidence) -> Table {
    let mut table = Table::new(
        "Streams",
        "Messages per second of one stream over a UNIX socket; of bidi streams round trips. Our client stands beside \
         both at each server.",
        &["Server", "Stream", "Size", "qt", "grpc-cpp", "thalweg", "thalweg, bytes/s"],
    );
    for (run, server) in [(AT_CPP, CPP), (AT_OURS, OURS)] {
        let Ok(calls) = evidence.calls(run) else { continue };
        for call in [CallType::ClientStream, CallType::ServerStream, CallType::BidiStream] {
            for size in calls.sizes() {
                let at = |client| {
                    calls.at(At::stream(client, server, call, size)).ok().map(|cell| cell.rate_per_s)
                };
                let rates = [QT, CPP, OURS].map(at);
                if rates.iter().all(Option::is_none) {
                    continue;
                }
                let mut row = vec![Field::words(server), Field::words(call.name()), size_field(size)];
                row.extend(rates.map(|rate| Field::figure(rate, count)));
                row.push(Field::figure(
                    rates[2].filter(|_| size > 0).map(|rate| rate * size as f64),
                    throughput,
                ));
                table.rows.push(row);
            }
        }
    }
    table
}

/// What TCP costs the three clients.
fn over_tcp(evidence: &Evidence) -> Table {
    let mut table = Table::new(
        "Over TCP",
        "Lone unary calls at gRPC C++’s server, over TCP on this machine and over a UNIX socket.",
        &["Size", "Client", "Median over TCP", "Median over UDS", "TCP ÷ UDS"],
    );
    let Ok(tcp) = evidence.calls(OVER_TCP) else { return table };
    let uds = evidence.calls(AT_CPP).ok();
    for size in tcp.sizes() {
        for client in [QT, CPP, OURS] {
            let at = At { transport: Transport::Tcp, ..At::lone(client, CPP, size) };
            let Ok(over_tcp) = tcp.at(at).and_then(|cell| cell.p50()) else { continue };
            let over_uds =
                uds.as_ref().and_then(|calls| calls.at(At::lone(client, CPP, size)).ok()?.p50().ok());
            table.rows.push(vec![
                size_field(size),
                Field::words(client),
                Field::figure(Some(over_tcp), time),
                Field::figure(over_uds, time),
                Field::figure(over_uds.map(|uds| over_tcp / uds), times),
            ]);
        }
    }
    table
}

fn size_field(size: u64) -> Field {
    Field { text: ByteSize(size).to_string(), value: Some(size as f64) }
}
