//! Summary of a capture.

use serde_json::{Value, json};

use crate::tree::counted;

/// Counts of a capture, including skipped and missing data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP connections.
    pub connections: u64,
    /// Connections of HTTP/2 that were decoded.
    pub http2: u64,
    /// TLS connections that were not decrypted.
    pub tls: u64,
    /// Why a TLS connection was not decrypted, other than for missing secrets.
    pub tls_not_decrypted: Option<String>,
    /// Connections with other protocols.
    pub other: u64,
    /// Connections that started before the capture and cannot be decoded.
    pub started_before: u64,
    /// Connections without data.
    pub silent: u64,
    /// Connections given up because there were too many at once.
    pub given_up: u64,
    /// Calls passed on.
    pub calls: u64,
    /// Non-gRPC requests over HTTP/2.
    pub other_requests: u64,
    /// Calls skipped because a connection had too many at once.
    pub calls_over_limit: u64,
    /// Number of gaps in connections.
    pub gaps: u64,
    /// Bytes missing in gaps.
    pub gap_bytes: u64,
    /// Packets truncated by the snapshot length.
    pub cut_packets: u64,
    /// IP fragments, which are skipped.
    pub fragments: u64,
    /// Packets of unknown link types.
    pub unknown_links: u64,
    /// One of the unknown link types.
    pub unknown_link: Option<i32>,
    /// Why reading stopped early.
    pub problem: Option<String>,
}

impl Summary {
    /// Returns a sentence for each kind of missing data. `has_keys` tells whether a key log was given.
    pub fn notes(&self, has_keys: bool) -> Vec<String> {
        let are = |count: u64| if count == 1 { "is" } else { "are" };
        let why_not_decrypted = match &self.tls_not_decrypted {
            _ if !has_keys => "use --keylog with the file that SSLKEYLOGFILE named",
            Some(why) => why,
            None => "secrets missing from the key log",
        };
        let places = counted(self.gaps as usize, "place");
        let unknown_link = self.unknown_link.unwrap_or_default();
        let notes = [
            (self.tls, "TLS connection", format!("not decrypted: {why_not_decrypted}")),
            (
                self.started_before,
                "connection",
                "started before the capture and cannot be decoded: its HPACK state is unknown".to_owned(),
            ),
            (self.other, "connection", "with other protocols".to_owned()),
            (self.other_requests, "request", format!("over HTTP/2 {} not gRPC", are(self.other_requests))),
            (self.gap_bytes, "byte", format!("missing from the capture, in {places}")),
            (
                self.cut_packets,
                "packet",
                format!(
                    "{} cut off by the capture; use `tcpdump -s 0` to capture whole packets",
                    are(self.cut_packets)
                ),
            ),
            (self.fragments, "IP fragment", "skipped: reassembly is not supported".to_owned()),
            (self.unknown_links, "packet", format!("skipped: unsupported link type {unknown_link}")),
            (self.given_up, "connection", "not followed: too many at once".to_owned()),
            (self.calls_over_limit, "call", "not followed: too many at once".to_owned()),
        ];
        let notes = notes.into_iter().filter(|(count, ..)| *count > 0);
        notes.map(|(count, noun, what)| format!("{} {what}", counted(count as usize, noun))).collect()
    }

    /// Returns a document of schema `thalweg.inspect-capture/1`. `name` is the capture's name, `shown` the number of
    /// shown calls.
    pub fn json(&self, name: &str, shown: u64, has_keys: bool) -> Value {
        json!({
            "schema": "thalweg.inspect-capture/1",
            "input": name,
            "packets": self.packets,
            "calls": self.calls,
            "shown": shown,
            "connections": {
                "all": self.connections,
                "http2": self.http2,
                "tls": self.tls,
                "begun_before": self.started_before,
                "other": self.other,
                "silent": self.silent,
                "given_up": self.given_up,
            },
            "cut_packets": self.cut_packets,
            "gaps": self.gaps,
            "gap_bytes": self.gap_bytes,
            "notes": self.notes(has_keys),
            "problem": self.problem,
        })
    }
}
