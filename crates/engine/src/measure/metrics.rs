//! What an application sets up: [`Metrics`].

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Meter, MeterProvider};

/// Metrics of a channel or a server, by OpenTelemetry; with the feature `opentelemetry`.
///
/// Names, units, labels and histogram boundaries are gRPC's: calls and attempts of gRFC [A66], connections of [A94],
/// retries of [A96]. `thalweg.channel.lanes` has no name there. Without them nothing is measured: there is no global
/// meter provider that a channel would take by itself, as A66 wants it; `opentelemetry::global::meter_provider()` can
/// be given here.
///
/// [A66]: https://github.com/grpc/proposal/blob/master/A66-otel-stats.md
/// [A94]: https://github.com/grpc/proposal/blob/master/A94-subchannel-otel-metrics.md
/// [A96]: https://github.com/grpc/proposal/blob/master/A96-retry-otel-stats.md
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) meter: Meter,
    pub(super) names_target: bool,
    pub(super) names_all_methods: bool,
}

impl Metrics {
    /// By a meter of this provider, which is called `thalweg` and has this crate's version.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("thalweg").with_version(env!("CARGO_PKG_VERSION"));
        let meter = provider.meter_with_scope(scope.build());
        Self { meter, names_target: true, names_all_methods: false }
    }

    /// Whether `grpc.target` is a channel's target, as it is by default, or `other`: for those who make channels to
    /// very many.
    pub fn names_target(mut self, does: bool) -> Self {
        self.names_target = does;
        self
    }

    /// Whether `grpc.method` is also the name of methods that are not known beforehand: those of a client's
    /// [`Method::from_path`](crate::Method::from_path). By default they are `other`, and so are, always, methods that a
    /// server does not have: peers could fill the memory with names.
    pub fn names_all_methods(mut self, does: bool) -> Self {
        self.names_all_methods = does;
        self
    }
}
