//! Metrics settings of an application: [`Metrics`].

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Meter, MeterProvider};

/// OpenTelemetry metrics of a channel or a server; with the feature `opentelemetry`.
///
/// Names, units, labels and histogram boundaries are gRPC's: calls and attempts of gRFC [A66], connections of [A94],
/// retries of [A96]. Only `thalweg.channel.lanes` is not defined there. Off by default: as A66 requires, there is no
/// global meter provider that channels use implicitly. `opentelemetry::global::meter_provider()` can be passed here.
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
    /// Uses a meter of this provider, named `thalweg` with this crate's version.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("thalweg").with_version(env!("CARGO_PKG_VERSION"));
        let meter = provider.meter_with_scope(scope.build());
        Self { meter, names_target: true, names_all_methods: false }
    }

    /// Sets whether `grpc.target` is the channel's target, which is the default, or `other`. Turn it off for channels
    /// to very many targets.
    pub fn names_target(mut self, does: bool) -> Self {
        self.names_target = does;
        self
    }

    /// Sets whether `grpc.method` also names methods that are not known in advance, from a client's
    /// [`Method::from_path`](crate::Method::from_path). By default they are `other`. Methods that a server does not
    /// have are always `other`: peers could fill the memory with names.
    pub fn names_all_methods(mut self, does: bool) -> Self {
        self.names_all_methods = does;
        self
    }
}
