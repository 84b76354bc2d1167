//! Load reports of servers (gRFC A51): [`LoadReport`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::wire::{Fields, MalformedMessage, Value, push_bytes, push_number};

/// An ORCA load report of a server (gRFC A51). Zero and empty where the server reports nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Time of arrival.
    pub received_at: Instant,
    /// CPU utilization; 1.0 is all that is provisioned, more is possible.
    pub cpu_utilization: f64,
    /// Memory utilization in 0..=1.
    pub memory_utilization: f64,
    /// Utilization as the application defines it; takes precedence over the CPU's if positive.
    pub application_utilization: f64,
    /// Queries per second.
    pub qps: f64,
    /// Errors per second.
    pub eps: f64,
    /// Utilization of other resources, in 0..=1, by name.
    pub utilization: BTreeMap<String, f64>,
    /// Other measurements of the application, by name.
    pub named_metrics: BTreeMap<String, f64>,
    /// Costs of the call whose trailers had the report, by name.
    pub request_cost: BTreeMap<String, f64>,
}

impl LoadReport {
    /// Trailer of a call with a report, in binary form.
    pub const TRAILER: &'static str = "endpoint-load-metrics-bin";
    /// Path of the method that reports out of band.
    pub const STREAM: &'static str = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";

    /// Creates an empty report.
    pub fn new(received_at: Instant) -> Self {
        Self {
            received_at,
            cpu_utilization: 0.0,
            memory_utilization: 0.0,
            application_utilization: 0.0,
            qps: 0.0,
            eps: 0.0,
            utilization: BTreeMap::new(),
            named_metrics: BTreeMap::new(),
            request_cost: BTreeMap::new(),
        }
    }

    /// Decodes an `xds.data.orca.v3.OrcaLoadReport`.
    ///
    /// # Errors
    /// Fails if `message` is not one. Values are not checked.
    pub fn decode(message: &[u8], received_at: Instant) -> Result<Self, MalformedMessage> {
        let mut report = Self::new(received_at);
        for field in Fields::new(message) {
            let (number, value) = field?;
            match number {
                1 => report.cpu_utilization = value.double()?,
                2 => report.memory_utilization = value.double()?,
                4 => insert(&mut report.request_cost, value)?,
                5 => insert(&mut report.utilization, value)?,
                6 => report.qps = value.double()?,
                7 => report.eps = value.double()?,
                8 => insert(&mut report.named_metrics, value)?,
                9 => report.application_utilization = value.double()?,
                // 3 was an integer in place of 6.
                _ => {}
            }
        }
        Ok(report)
    }

    /// Encodes an `OrcaLoadReportRequest` for reports at this interval. The server may report less often.
    pub fn request(interval: Duration) -> Vec<u8> {
        let (mut duration, mut request) = (Vec::new(), Vec::new());
        push_number(&mut duration, 1, interval.as_secs().min(SECONDS_MAX));
        push_number(&mut duration, 2, interval.subsec_nanos().into());
        push_bytes(&mut request, 1, &duration);
        request
    }

    /// Returns whether the report is about the server. Otherwise it is empty, or has costs of one call only.
    pub fn has_load(&self) -> bool {
        let Self { cpu_utilization, memory_utilization, application_utilization, qps, eps, .. } = *self;
        let values = [cpu_utilization, memory_utilization, application_utilization, qps, eps];
        values.iter().any(|&value| value != 0.0)
            || !(self.utilization.is_empty() && self.named_metrics.is_empty())
    }
}

/// Largest duration of Protobuf: 10,000 years.
const SECONDS_MAX: u64 = 315_576_000_000;

/// Adds an entry of a `map<string, double>`.
fn insert(map: &mut BTreeMap<String, f64>, entry: Value<'_>) -> Result<(), MalformedMessage> {
    let (mut key, mut number) = ("", 0.0);
    for field in Fields::new(entry.bytes()?) {
        match field? {
            (1, value) => key = value.text()?,
            (2, value) => number = value.double()?,
            _ => {}
        }
    }
    map.insert(key.to_owned(), number);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::mix;

    fn double(number: u8, value: f64) -> Vec<u8> {
        [&[number << 3 | 1][..], &value.to_le_bytes()].concat()
    }

    fn entry(number: u8, key: &str, value: f64) -> Vec<u8> {
        let (mut entry, mut field) = (Vec::new(), Vec::new());
        push_bytes(&mut entry, 1, key.as_bytes());
        entry.extend(double(2, value));
        push_bytes(&mut field, number, &entry);
        field
    }

    #[test]
    fn report_is_decoded() {
        let fields = [
            double(1, 0.5),
            double(2, 0.25),
            entry(4, "rows", 3487.0),
            entry(5, "queue", 0.75),
            double(6, 100.5),
            double(7, 1.5),
            entry(8, "open files", 7.0),
            entry(8, "", 0.0),
            double(9, 1.25),
            // `rps`, and a field of the future.
            b"\x18\x64".to_vec(),
            b"\x52\x01a".to_vec(),
        ];
        let at = Instant::now();
        let map = |entries: &[(&str, f64)]| {
            entries.iter().map(|&(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>()
        };
        let expected = LoadReport {
            received_at: at,
            cpu_utilization: 0.5,
            memory_utilization: 0.25,
            application_utilization: 1.25,
            qps: 100.5,
            eps: 1.5,
            utilization: map(&[("queue", 0.75)]),
            named_metrics: map(&[("open files", 7.0), ("", 0.0)]),
            request_cost: map(&[("rows", 3487.0)]),
        };
        assert_eq!(LoadReport::decode(&fields.concat(), at), Ok(expected));
        assert_eq!(LoadReport::decode(b"", at), Ok(LoadReport::new(at)));
    }

    #[test]
    fn malformed_reports_are_errors() {
        for malformed in
            [&b"\x09\0"[..], b"\x08\x01", b"\x22\x02\x0a\x05", b"\x22\x03\x0a\x01\xff", b"report"]
        {
            assert_eq!(LoadReport::decode(malformed, Instant::now()), Err(MalformedMessage), "{malformed:?}");
        }
        // Any bytes are a report or an error.
        let (at, mut random) = (Instant::now(), 1);
        for len in 0..2000 {
            let bytes: Vec<u8> = (0..len % 64)
                .map(|_| {
                    random = mix(random);
                    random as u8
                })
                .collect();
            let _ = LoadReport::decode(&bytes, at);
        }
    }

    #[test]
    fn costs_of_a_call_are_no_load() {
        let has_load = |fields: &[Vec<u8>]| {
            LoadReport::decode(&fields.concat(), Instant::now()).expect("a report").has_load()
        };
        assert!(!has_load(&[]));
        assert!(!has_load(&[entry(4, "rows", 3487.0)]));
        for load in [double(1, 0.5), double(6, 1.0), entry(5, "queue", 0.0), entry(8, "open files", 0.0)] {
            assert!(has_load(&[entry(4, "rows", 3487.0), load]));
        }
    }

    #[test]
    fn request_has_the_interval() {
        assert_eq!(LoadReport::request(Duration::from_secs(10)), b"\x0a\x02\x08\x0a");
        assert_eq!(LoadReport::request(Duration::from_millis(1)), b"\x0a\x04\x10\xc0\x84\x3d");
        assert_eq!(LoadReport::request(Duration::ZERO), b"\x0a\0");
        assert_eq!(LoadReport::request(Duration::MAX).len(), 15);
    }
}
