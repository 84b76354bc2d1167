//! Method of a study.

use thalweg_measure::figures::{percent, time};
use thalweg_measure::statistics::PAIRS_MIN;

use super::super::lines::PLATEAU_FACTOR;
use crate::load::LabResults;
use crate::load::verdict::MARGIN;

/// Describes the method in sentences.
pub(in crate::studies::sizes) fn method(results: &LabResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = match (&settings.client_cpus, &settings.server_cpus) {
        (Some(client), Some(server)) => format!(
            "Client and server are separate processes on separate CPUs: the client on {client}, the server on \
             {server}. The threads of the bare socket use the same CPUs."
        ),
        _ => "Client and server are separate processes that share one CPU.".to_owned(),
    };
    let in_flight = results.points.iter().map(|result| result.point.in_flight).max().unwrap_or(1);
    let rounds = results.points.iter().map(|window| window.round + 1).max().unwrap_or(1);
    let times = results.points.first().map(|result| {
        let (warmup, measured) = (result.point.warmup.as_nanos() as f64, result.point.duration.as_nanos() as f64);
        format!(
            "Each point has {rounds} windows, interleaved with everything that it is compared with, in forward and \
             then reverse order. A window starts with an uncounted warm-up of {}, so that connections, caches and \
             windows are warm, and is then measured for {}. A rate is the geometric mean of its windows, and its 95 % \
             interval follows from how much they differ; percentiles are the medians of the windows’ percentiles.",
            time(warmup),
            time(measured)
        )
    });
    let sentences = [
        Some(pinned),
        Some(
            "The load is a closed loop: a call waits for the one before it. Latency is how long calls take once they \
             are made, not how long they would wait in a queue."
                .to_owned(),
        ),
        Some(format!(
            "Unary calls are made one at a time, and with {in_flight} in flight on one connection. Streams are one per \
             connection and pipelined: the driver hands messages over as fast as flow control permits; on a bidi \
             stream up to 1 MiB or 4096 messages await their echo."
        )),
        Some(
            "For all four call types, the clock starts when a message is handed to the library, before it is encoded. \
             It stops when the response is available (unary calls and bidi streams), when the next message may be \
             handed over (client streams), or when the next message is available (server streams)."
                .to_owned(),
        ),
        times,
        Some(
            "One monotonic clock. Percentiles are from HDR histograms of three digits; minimum, mean and maximum are \
             exact. A status other than OK is an error and has no latency. Connections are counted in the kernel."
                .to_owned(),
        ),
        Some(
            "The bare socket moves the same payloads, each with gRPC’s five bytes of prefix and nothing else, in the \
             same run: as an echo with as many in flight, or one way; the fastest of three connections counts. It is a \
             reference, not a bound: one thread per side alternates between reading and writing, and a stack that does \
             both at once can exceed it."
                .to_owned(),
        ),
        Some(format!(
            "A latency plateau is the median of the three smallest sizes; a size has left it when its median latency, \
             and that of every larger size, is above {PLATEAU_FACTOR} times that."
        )),
    ];
    let comparing = if results.is_comparison() { comparing() } else { Vec::new() };
    comparing.into_iter().chain(sentences.into_iter().flatten()).collect()
}

/// Describes the method of a comparison.
fn comparing() -> Vec<String> {
    [
        "Each stack’s client calls its own server, unless a pair names two stacks. All get the same arguments and \
         CPUs and do the same work: the same message size, verified responses, the same counting."
            .to_owned(),
        "Stacks are measured in short, interleaved windows, in forward and then reverse order (A B C, C B A, …): \
         what slows the machine slows all of them, and each is measured as often before as after the others."
            .to_owned(),
        format!(
            "A ratio is ours ÷ theirs: the geometric mean over pairs of windows of the same round. Windows that failed \
             or had errors are excluded from pairs, and counted; with fewer than {PAIRS_MIN} pairs there is no \
             interval. Windows whose client was the limit stay: a pair is compared as a whole, including its client."
        ),
        "The 95 % interval comes from how much the pairs differ: each end is the farther one of Student’s t of the log \
         ratios and of a bootstrap over pairs, widened for small samples. In simulated studies with 6 to 16 pairs, its \
         coverage is about 95 %, or 87 to 93 % if only one side has long waits."
            .to_owned(),
        "“Faster” and “slower” require that the interval excludes 1 and that the ratio differs from 1 by more than the \
         noise floor, which is measured by comparing thalweg with itself in the same rounds. About one in twenty equal \
         cells still looks different by chance."
            .to_owned(),
        format!(
            "“No difference” requires that neither is faster and that the whole interval is within {} of 1. If no \
             verdict applies, the study cannot tell.",
            percent(MARGIN - 1.0)
        ),
        "Processor time and context switches are the kernel’s, of the client’s and of the server’s process, divided by \
         operations; system calls were counted in separate runs, because counting slows them."
            .to_owned(),
    ]
    .to_vec()
}
