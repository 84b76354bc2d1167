//! What to do, by situation, each with the claim that its advice rests on.

use super::publication::Publication;

/// An advice.
pub(crate) struct Situation {
    /// Where a reader stands.
    pub(crate) reader: &'static str,
    /// What to do there.
    pub(crate) advice: &'static str,
    /// Whose claim shows it.
    pub(crate) publication: Publication,
    pub(crate) claim: &'static str,
    /// It is good advice only where the claim holds.
    pub(crate) rests: bool,
}

const fn of(
    publication: Publication,
    claim: &'static str,
    reader: &'static str,
    advice: &'static str,
) -> Situation {
    Situation { reader, advice, publication, claim, rests: true }
}

/// Good advice whatever came of the claim, whose figures say why.
const fn always(
    publication: Publication,
    claim: &'static str,
    reader: &'static str,
    advice: &'static str,
) -> Situation {
    Situation { rests: false, ..of(publication, claim, reader, advice) }
}

/// In the order of the page.
pub(crate) const SITUATIONS: &[Situation] = &[
    of(
        Publication::Channels,
        "several",
        "Many callers share one channel, and its latency grows while processors idle",
        "Give the client several connections: thalweg’s channel does so by itself; gRPC C++ takes channels with \
         GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, grpc-go and tonic several channels taken in turn.",
    ),
    of(
        Publication::Channels,
        "shared",
        "Several channels of gRPC C++ are no faster than one",
        "Count the connections (`ss -t`): channels of equal arguments are one connection.",
    ),
    of(
        Publication::Channels,
        "far",
        "The server is milliseconds away",
        "Put more calls in flight; more connections help little.",
    ),
    of(
        Publication::Channels,
        "pinning",
        "Figures differ from run to run",
        "Keep client and server on processors of their own, and compare runs that took turns.",
    ),
    of(
        Publication::Qt,
        "flat",
        "Small messages, one call at a time",
        "The size hardly matters: put into one call what belongs together.",
    ),
    of(Publication::Qt, "sweet", "Much data", "Stream it in messages from some hundred KiB to 1.5 MB."),
    of(
        Publication::Qt,
        "split",
        "Data both ways that does not answer each other",
        "Use a client stream and a server stream beside each other in the place of one bidi stream.",
    ),
    of(
        Publication::Qt,
        "large",
        "A client on Qt GRPC",
        "Keep messages below 32 KiB, prefer a UNIX socket on one machine, and end client streams before they fill the \
         memory.",
    ),
    of(
        Publication::Codec,
        "factor",
        "Protobuf or JSON, by the cost of converting",
        "Measure your own messages (`thalweg lab codec --proto …`): small messages and numbers gain, long strings \
         hardly.",
    ),
    of(
        Publication::Codec,
        "bytes",
        "Protobuf or JSON, by bytes",
        "Leave out nulls first; compression takes most of what is left of the gap in large messages.",
    ),
    always(
        Publication::Json,
        "few",
        "A comparison of a few calls on the JVM",
        "Warm each server up the way it is measured, for seconds, and tell first calls apart.",
    ),
    always(
        Publication::Json,
        "spikes",
        "Spikes on the JVM",
        "Keep them in the figures and look into its log (`-Xlog:gc,safepoint,jit+compilation=debug`).",
    ),
];
