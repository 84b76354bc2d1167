//! Flags of other tools without an equivalent, with hints.

/// Flags of one command and the hint for them.
pub(super) struct ForeignFlags {
    pub(super) command: &'static str,
    pub(super) flags: &'static [&'static str],
    hint: &'static str,
}

const fn load(flags: &'static [&'static str], hint: &'static str) -> ForeignFlags {
    ForeignFlags { command: "load", flags, hint }
}

const fn call(flags: &'static [&'static str], hint: &'static str) -> ForeignFlags {
    ForeignFlags { command: "call", flags, hint }
}

/// The flags of ghz, oha and hey for `load`, and of grpcurl for `call`. `docs/load.md` and `docs/call.md` list the
/// same.
pub(super) const FOREIGN_FLAGS: &[ForeignFlags] = &[
    load(&["data-file", "D"], "use -d @FILE"),
    load(&["binary", "binary-file", "b", "B"], "use -I binary with -d @FILE or -d @-"),
    load(&["metadata-file", "M"], "use -m 'name: value', once for each"),
    load(&["config"], "use --scenario FILE for the calls, and flags for rate and duration"),
    load(&["async"], "use --rps, which starts calls without waiting for responses"),
    load(
        &["load-schedule", "load-start", "load-step", "load-end", "load-step-duration", "load-max-duration"],
        "use one schedule: --rps 100..5000/60s is a ramp, 100..500+100/10s are steps",
    ),
    load(
        &[
            "concurrency-schedule",
            "concurrency-start",
            "concurrency-end",
            "concurrency-step",
            "concurrency-step-duration",
            "concurrency-max-duration",
        ],
        "use --workers 1..100/60s",
    ),
    load(&["stream-interval"], "use --message-rate 100, in messages per second"),
    load(&["stream-call-duration"], "use --stream-for DURATION"),
    load(&["stream-call-count"], "use --messages N for those sent, --responses N for those received"),
    load(&["stream-dynamic-messages"], "leave it out: templates are filled for each message"),
    load(&["skipFirst"], "use --warmup DURATION"),
    load(&["count-errors"], "leave it out: failed calls are in failed_latency of the result"),
    load(
        &["debug", "v", "version", "V"],
        "use `thalweg call -v`, which shows one call; `thalweg --version` prints the version",
    ),
    load(&["enable-compression", "e"], "use --compress gzip"),
    load(&["lb-strategy"], "use --also TARGET to share calls between servers"),
    load(&["max-send-message-size"], "leave it out: requests of any size are sent"),
    load(&["max-recv-message-size"], "use --max-message-size SIZE"),
    load(&["disable-template-functions", "disable-template-data"], "use --no-templates"),
    load(&["latency-correction"], "leave it out: with --rps latency counts from the intended start"),
    load(&["burst-delay", "burst-rate"], "use --rps 50@10s: 50 calls at once, every 10 s"),
    load(&["wait-ongoing-requests-after-deadline", "w"], "use --duration-stop wait"),
    load(&["p"], "use --connections N, and -c N for the calls over all of them"),
    load(
        &["rand-regex-url", "max-repeat", "dump-urls", "urls-from-file"],
        "use templates in requests, -d @FILE, or --scenario for several methods",
    ),
    load(&["fps"], "leave it out, or use --no-tui"),
    load(
        &["redirect", "A", "T", "http-version", "http2", "no-pre-lookup", "proxy-header"],
        "leave it out: gRPC is POST over HTTP/2",
    ),
    load(&["proxy-http-version", "proxy-http2"], "leave it out: it would measure the proxy, too"),
    load(&["host"], "use --authority"),
    load(&["aws-session", "aws-sigv4", "a"], "use -m 'authorization: …'"),
    load(&["form", "F", "Z"], "use -d JSON or -d @FILE"),
    load(&["disable-compression"], "leave it out: no compression is the default"),
    load(&["disable-keepalive"], "use --lanes per-call"),
    load(&["ipv4", "ipv6", "connect-to"], "use ipv4:ADDR:PORT or ipv6:[ADDR]:PORT as the target"),
    load(&["unix-socket"], "use unix:PATH as the target"),
    load(&["stats-success-breakdown"], "leave it out: latency and failed_latency are always apart"),
    load(&["db-url"], "use -O csv or -O json with -o FILE"),
    load(&["output-format"], "use -O text, json, csv or html"),
    load(&["time-unit", "no-color", "u"], "leave it out: units are chosen automatically"),
    call(&["rpc-header"], "use -m for the call, and --reflect-metadata for reflection"),
    call(
        &["use-reflection"],
        "leave it out: descriptors come from files if they are given, else from reflection",
    ),
    call(&["proto-out-dir"], "use --protoset-out FILE; `describe` prints declarations"),
    call(
        &["alts", "alts-handshaker-service", "alts-target-service-account"],
        "leave it out: ALTS works only in Google Cloud and is not supported",
    ),
    call(&["unix"], "use unix:PATH as the target"),
    call(&["version"], "use `thalweg --version`"),
];

/// Returns the hint for a flag of another tool.
pub(super) fn hint(path: &[&str], name: &str) -> Option<&'static str> {
    let command = path.first()?;
    let row = FOREIGN_FLAGS.iter().find(|row| row.command == *command && row.flags.contains(&name))?;
    Some(row.hint)
}
