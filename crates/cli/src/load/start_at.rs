//! Agreed start times of measurements.

use std::time::{Duration, SystemTime};

use thalweg_measure::figures::span;

/// Returns `measuring starts at 2026-11-26T09:30:00Z, in 12 s`, or `None` for a past time.
pub(super) fn waits(start_at: SystemTime) -> Option<String> {
    let ahead = start_at.duration_since(SystemTime::now()).ok()?;
    Some(format!("measuring starts at {}, in {}", humantime::format_rfc3339(start_at), span(ahead)))
}

/// Parses RFC 3339 or seconds since 1970.
pub(super) fn parse(text: &str) -> Result<SystemTime, String> {
    let since_1970 = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = match since_1970 {
        Some(since) => SystemTime::UNIX_EPOCH.checked_add(since),
        None => humantime::parse_rfc3339(text).ok(),
    };
    time.ok_or_else(|| {
        format!(
            "invalid time `{text}`; use RFC 3339 (2026-11-26T09:30:00Z) or seconds since 1970 \
             ($(($(date +%s) + 60)))"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_parsed_in_both_forms() {
        let at = |seconds: f64| Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds));
        assert_eq!(parse("1970-01-01T00:01:00Z"), at(60.0));
        assert_eq!(parse("1970-01-01T00:01:00.250Z"), at(60.25));
        assert_eq!(parse("60"), at(60.0));
        assert_eq!(parse("60.5"), at(60.5));
        for text in ["", "soon", "-1", "+30s", "1e300", "2026-11-26"] {
            assert!(parse(text).unwrap_err().contains("invalid time"), "{text}");
        }
    }
}
