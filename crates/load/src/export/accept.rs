//! Negotiation of the text format for a scraper.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFormat {
    Prometheus,
    OpenMetrics,
}

impl TextFormat {
    /// Chooses by a request's `accept` header. Prometheus's own format is the default.
    pub(super) fn of(accept: &str) -> Self {
        let takes_open = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_open =
                parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
            let refused = |parameter: &str| {
                let weight = parameter.strip_prefix("q=").and_then(|weight| weight.parse::<f64>().ok());
                weight == Some(0.0)
            };
            is_open && !parts.any(refused)
        });
        if takes_open { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TextFormat::{self, OpenMetrics, Prometheus};

    #[test]
    fn openmetrics_is_sent_only_if_accepted() {
        for (accept, expected) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Prometheus),
            ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5", OpenMetrics),
            ("text/plain, application/openmetrics-text; q=0", Prometheus),
        ] {
            assert_eq!(TextFormat::of(accept), expected, "{accept}");
        }
    }
}
