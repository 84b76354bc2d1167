//! What else a capture has, and what it lacks.

use serde_json::{Value, json};

use crate::tree::counted;

/// What else a capture has, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP connections.
    pub connections: u64,
    /// Those that speak HTTP/2 and were followed.
    pub http2: u64,
    /// Those that speak TLS and could not be opened.
    pub tls: u64,
    /// Why one of these could not be opened, if it was not for want of its secrets.
    pub tls_closed: Option<String>,
    /// Those that speak something else.
    pub other: u64,
    /// Those that began before the capture did, so that nothing can be said of them.
    pub begun_before: u64,
    /// Those without any bytes.
    pub silent: u64,
    /// Those that were given up, as there were too many at once.
    pub given_up: u64,
    /// Calls that were given.
    pub calls: u64,
    /// Requests over HTTP/2 that are not gRPC's.
    pub other_requests: u64,
    /// Calls that were not followed, as there were too many at once on a connection.
    pub calls_beyond: u64,
    /// Places where bytes of a connection are not in the capture.
    pub gaps: u64,
    /// How many bytes these are.
    pub gap_bytes: u64,
    /// Packets of which the capture has only the beginning: its snapshot length was too small.
    pub cut_packets: u64,
    /// Fragments of IP packets, which are not put together.
    pub fragments: u64,
    /// Packets of a link type that is not known.
    pub unknown_links: u64,
    /// The number of such a type.
    pub unknown_link: Option<i32>,
    /// Why the capture could not be read to its end.
    pub problem: Option<String>,
}

impl Summary {
    /// Returns a sentence for each thing that is missing. `has_keys`: a key log was given.
    pub fn notes(&self, has_keys: bool) -> Vec<String> {
        let are = |count: u64| if count == 1 { "is" } else { "are" };
        let why_closed = match &self.tls_closed {
            _ if !has_keys => "use --keylog with the file that SSLKEYLOGFILE named",
            Some(why) => why,
            None => "their secrets are not in the key log",
        };
        let places = counted(self.gaps as usize, "place");
        let unknown_link = self.unknown_link.unwrap_or_default();
        let notes = [
            (self.tls, "TLS connection", format!("not decrypted: {why_closed}")),
            (
                self.begun_before,
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
            (self.calls_beyond, "call", "not followed: too many at once".to_owned()),
        ];
        let notes = notes.into_iter().filter(|(count, ..)| *count > 0);
        notes.map(|(count, noun, what)| format!("{} {what}", counted(count as usize, noun))).collect()
    }

    /// Returns a document of the schema `thalweg.inspect-capture/1`. `name` is the capture's, and `shown` the number of
    /// calls that were shown.
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
                "begun_before": self.begun_before,
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
