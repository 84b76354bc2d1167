//! Runs of `thalweg compare`: two servers that it starts itself, and measures in turns.

use std::process::Output;

use serde_json::Value;

use super::servers::Kind;
use crate::job::{Failure, Log};

/// A comparison of two that serve the same.
pub(super) struct Comparison {
    a: Kind,
    b: Kind,
    /// How both are addressed.
    target: &'static str,
    /// For the load.
    words: &'static [&'static str],
    loop_kind: &'static str,
}

const ROUNDS: usize = 3;
const SETTINGS: &[&str] =
    &["--rounds", "3", "--window", "300ms", "--warmup", "100ms", "--fail-on", "none", "-O", "json"];

/// grpc-go and tonic: a call in a closed loop, one at a rate, and one over TLS.
pub(super) const COMPARISONS: &[Comparison] = &[
    Comparison {
        a: Kind::Greeter,
        b: Kind::Tonic,
        target: "localhost:{port}",
        words: &[
            "--call",
            "helloworld.Greeter/SayHello",
            "--proto",
            "EXAMPLES/helloworld/helloworld/helloworld.proto",
            "-d",
            r#"{"name": "Ada"}"#,
        ],
        loop_kind: "closed",
    },
    Comparison {
        a: Kind::RouteGuide,
        b: Kind::Tonic,
        target: "localhost:{port}",
        words: &[
            "--call",
            "routeguide.RouteGuide/GetFeature",
            "--proto",
            "route_guide.proto",
            "-d",
            r#"{"latitude": 409146138, "longitude": -746188906}"#,
            "--rps",
            "500",
        ],
        loop_kind: "open",
    },
    Comparison {
        a: Kind::RouteGuideTls,
        b: Kind::TonicTls,
        target: "https://localhost:{port}",
        words: &[
            "--cacert",
            "EXAMPLES/data/x509/ca_cert.pem",
            "--servername",
            "x.test.example.com",
            "--call",
            "routeguide.RouteGuide/GetFeature",
            "--proto",
            "route_guide.proto",
        ],
        loop_kind: "closed",
    },
];

impl Comparison {
    /// What `thalweg compare` is told.
    pub(super) fn words(&self, log: &Log) -> Result<Vec<String>, Failure> {
        let command = |kind: Kind| Ok::<_, Failure>(kind.job("{port}", log)?.shell());
        let sides = ["--a".to_owned(), command(self.a)?, "--b".to_owned(), command(self.b)?];
        let rest = [&["--target", self.target], SETTINGS, &["--"], self.words].concat();
        Ok(sides.into_iter().chain(rest.into_iter().map(str::to_owned)).collect())
    }

    /// What is otherwise than expected: each round is a pair of windows in which no call failed, and the processor time
    /// of both servers is known.
    pub(super) fn fault(&self, output: &Output) -> Option<String> {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let comparison = &report["comparisons"][0];
        let cell = &comparison["cells"][0];
        let measured = |name: &str| {
            let figures = cell["figures"].as_array().into_iter().flatten();
            let mut figures = figures.filter(|figure| figure["figure"] == name);
            figures.any(|figure| {
                let is_positive = |side: &str| figure[side].as_f64().is_some_and(|value| value > 0.0);
                figure["rounds"] == serde_json::json!([ROUNDS, ROUNDS])
                    && is_positive("a")
                    && is_positive("b")
            })
        };
        let missing =
            ["rate", "p50", "p99", "client-cpu", "server-cpu"].into_iter().filter(|name| !measured(name));
        let mut faults: Vec<String> =
            missing.map(|name| format!("{name} is not of {ROUNDS} rounds")).collect();
        let expected = [
            ("paired", &comparison["paired"], Value::from(true)),
            ("loop", &cell["loop"], self.loop_kind.into()),
            ("failed_share", &cell["failed_share"], serde_json::json!([0.0, 0.0])),
        ];
        for (name, value, expected) in expected {
            if *value != expected {
                faults.push(format!("{name}: {value}, not {expected}"));
            }
        }
        if output.status.success() && faults.is_empty() {
            return None;
        }
        let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr));
        Some(format!("{status}; {}; {said}", faults.join(", ")))
    }
}
