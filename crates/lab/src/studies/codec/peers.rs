//! Peers in other languages that convert the same messages with `peer convert`, see `peers/README.md`.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::tables::{CodecInfo, PeerLine, PeerLoop, PeerResult};
use crate::peers::{CONVERTERS, PeersDirectory};

/// Schema of a peer's output.
const PEER_SCHEMA: &str = "thalweg.codec-peer/1";

/// Output of `peer convert`.
#[derive(Deserialize)]
struct Printed {
    schema: String,
    version: String,
    method: String,
    codecs: Vec<CodecInfo>,
    lines: Vec<PeerLine>,
    #[serde(default)]
    loops: Vec<PeerLoop>,
}

/// Runs a peer on the messages in `folder` and reads its [`PEER_SCHEMA`] output. `quick`: as briefly as possible.
pub(super) fn convert(
    peers: &PeersDirectory,
    name: &str,
    folder: &Path,
    quick: bool,
) -> Result<PeerResult, String> {
    let (_, name) = CONVERTERS.iter().find(|peer| peer.0 == name).ok_or("unknown codec")?;
    let program = peers.executable_of(name)?;
    let mut command = Command::new(&program);
    command.arg("convert").arg("--messages").arg(folder);
    if quick {
        command.arg("--quick");
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("failed to start `{} convert`: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("`{} convert` failed: {}", program.display(), output.status));
    }
    read(name, &output.stdout).map_err(|reason| format!("`{} convert` printed {reason}", program.display()))
}

fn read(name: &str, text: &[u8]) -> Result<PeerResult, String> {
    let printed: Printed =
        serde_json::from_slice(text).map_err(|error| format!("invalid {PEER_SCHEMA}: {error}"))?;
    if printed.schema != PEER_SCHEMA {
        return Err(format!("{}, expected {PEER_SCHEMA}", printed.schema));
    }
    let Printed { version, method, codecs, lines, loops, .. } = printed;
    Ok(PeerResult { name: name.to_owned(), version, method, codecs, lines, loops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::codec::line::{Format, Operation};

    #[test]
    fn peer_output_is_parsed() {
        let text = r#"{"schema": "thalweg.codec-peer/1", "version": "JVM 17", "method": "by JMH",
            "codecs": [{"name": "jackson", "version": "2", "format": "json", "dynamic": false, "about": "records"}],
            "lines": [{"data": "order", "codec": "jackson", "operation": "round_trip",
                       "ns_per_conversion": [900.5, 880.0], "bytes": 380}],
            "loops": [{"data": "order", "codec": "jackson", "operation": "round_trip", "round": 0,
                       "conversions": 10, "elapsed_ns": 90000}]}"#;
        let peer = read("jvm-codec", text.as_bytes()).unwrap();
        assert_eq!(
            (peer.codecs[0].format, peer.lines[0].line.operation),
            (Format::Json, Operation::RoundTrip)
        );
        assert_eq!((peer.loops[0].conversions, peer.loops[0].elapsed_ns), (10, 90_000));
        assert_eq!(read("x", b"{}").unwrap_err().split(':').next(), Some("invalid thalweg.codec-peer/1"));
        let other = text.replace("codec-peer/1", "codec-peer/2");
        assert_eq!(
            read("x", other.as_bytes()).unwrap_err(),
            "thalweg.codec-peer/2, expected thalweg.codec-peer/1"
        );
    }
}
