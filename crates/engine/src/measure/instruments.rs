//! The instruments of gRFC A66, A78, A94 and A96.

use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

/// Histogram boundaries of A66 for durations, in seconds.
const LATENCY_S: [f64; 41] = [
    0.0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008,
    0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4,
    0.5, 0.65, 0.8, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// Histogram boundaries of A66 for sizes, in bytes.
const SIZE_BYTES: [f64; 14] = [
    0.0,
    1024.0,
    2048.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
    268_435_456.0,
    1_073_741_824.0,
    4_294_967_296.0,
];

/// Histogram boundaries of A96.
const RETRIES: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];

/// Metrics of each call on a server, and of each attempt on a client.
#[derive(Debug)]
pub(super) struct Each {
    pub(super) started: Counter<u64>,
    pub(super) duration: Histogram<f64>,
    pub(super) sent: Histogram<u64>,
    pub(super) received: Histogram<u64>,
}

#[derive(Debug)]
pub(super) struct ClientInstruments {
    pub(super) call_duration: Histogram<f64>,
    pub(super) attempt: Each,
    pub(super) transparent_retries: Histogram<u64>,
    pub(super) retries: Histogram<u64>,
    pub(super) hedges: Histogram<u64>,
    pub(super) retry_delay: Histogram<f64>,
    pub(super) disconnections: Counter<u64>,
    pub(super) attempts_succeeded: Counter<u64>,
    pub(super) attempts_failed: Counter<u64>,
    pub(super) open_connections: UpDownCounter<i64>,
    pub(super) wrr_fallbacks: Counter<u64>,
    pub(super) wrr_not_yet_usable: Counter<u64>,
    pub(super) wrr_stale: Counter<u64>,
    pub(super) wrr_weights: Histogram<f64>,
    pub(super) lanes: UpDownCounter<i64>,
}

impl ClientInstruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        let up_down = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.i64_up_down_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            call_duration: seconds(
                meter,
                "grpc.client.call.duration",
                "Time from the application's call to its status.",
            ),
            attempt: Each {
                started: counter("grpc.client.attempt.started", "{attempt}", "Call attempts started."),
                duration: seconds(
                    meter,
                    "grpc.client.attempt.duration",
                    "Duration of call attempts, including the wait for a connection.",
                ),
                sent: bytes(
                    meter,
                    "grpc.client.attempt.sent_total_compressed_message_size",
                    "Bytes of an attempt's request messages, compressed and without framing.",
                ),
                received: bytes(
                    meter,
                    "grpc.client.attempt.rcvd_total_compressed_message_size",
                    "Bytes of an attempt's response messages, compressed and without framing.",
                ),
            },
            transparent_retries: meter
                .u64_histogram("grpc.client.call.transparent_retries")
                .with_unit("{transparent_retry}")
                .with_description("Transparent retries per call, for calls with retries.")
                .with_boundaries(RETRIES.to_vec())
                .build(),
            retries: meter
                .u64_histogram("grpc.client.call.retries")
                .with_unit("{retry}")
                .with_description("Retries by policy per call, for calls with retries.")
                .with_boundaries(RETRIES.to_vec())
                .build(),
            hedges: meter
                .u64_histogram("grpc.client.call.hedges")
                .with_unit("{hedge}")
                .with_description("Hedged attempts per call besides the first, for calls with any.")
                .with_boundaries(RETRIES.to_vec())
                .build(),
            retry_delay: seconds(
                meter,
                "grpc.client.call.retry_delay",
                "Total time of a call between its attempts, for calls with retries by policy.",
            ),
            disconnections: counter(
                "grpc.subchannel.disconnections",
                "{disconnection}",
                "Connections that ended or accept no more calls.",
            ),
            attempts_succeeded: counter(
                "grpc.subchannel.connection_attempts_succeeded",
                "{attempt}",
                "Attempts to connect that succeeded.",
            ),
            attempts_failed: counter(
                "grpc.subchannel.connection_attempts_failed",
                "{attempt}",
                "Attempts to connect that failed.",
            ),
            open_connections: up_down(
                "grpc.subchannel.open_connections",
                "{connection}",
                "Connections that accept calls.",
            ),
            wrr_fallbacks: counter(
                "grpc.lb.wrr.rr_fallback",
                "{update}",
                "Calculations of weights after which calls go in turn, for want of two usable weights.",
            ),
            wrr_not_yet_usable: counter(
                "grpc.lb.wrr.endpoint_weight_not_yet_usable",
                "{endpoint}",
                "Endpoints without a load report from before the blackout period, per calculation of weights.",
            ),
            wrr_stale: counter(
                "grpc.lb.wrr.endpoint_weight_stale",
                "{endpoint}",
                "Endpoints whose load report has expired, per calculation of weights.",
            ),
            wrr_weights: meter
                .f64_histogram("grpc.lb.wrr.endpoint_weights")
                .with_unit("{weight}")
                .with_description(
                    "Weight of each endpoint, per calculation of weights. 0 if it is not usable.",
                )
                .build(),
            lanes: up_down("thalweg.channel.lanes", "{lane}", "Lanes of channels, connected or not."),
        }
    }
}

/// Creates a server's instruments.
pub(super) fn server_calls(meter: &Meter) -> Each {
    let started = meter.u64_counter("grpc.server.call.started").with_unit("{call}");
    Each {
        started: started.with_description("Calls started.").build(),
        duration: seconds(
            meter,
            "grpc.server.call.duration",
            "Time from a request's headers to the end of the response.",
        ),
        sent: bytes(
            meter,
            "grpc.server.call.sent_total_compressed_message_size",
            "Bytes of a call's response messages, compressed and without framing.",
        ),
        received: bytes(
            meter,
            "grpc.server.call.rcvd_total_compressed_message_size",
            "Bytes of a call's request messages, compressed and without framing.",
        ),
    }
}

fn seconds(meter: &Meter, name: &'static str, description: &'static str) -> Histogram<f64> {
    let histogram = meter.f64_histogram(name).with_unit("s").with_description(description);
    histogram.with_boundaries(LATENCY_S.to_vec()).build()
}

fn bytes(meter: &Meter, name: &'static str, description: &'static str) -> Histogram<u64> {
    let histogram = meter.u64_histogram(name).with_unit("By").with_description(description);
    histogram.with_boundaries(SIZE_BYTES.to_vec()).build()
}
