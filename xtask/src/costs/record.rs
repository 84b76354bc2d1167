//! The committed counts: `xtask/costs.json`, one per line.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::Result;
use crate::job::Job;
use crate::{files, workspace};

/// Cost of one call or message on one side.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Cost {
    pub(crate) case: String,
    pub(crate) side: String,
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
}

/// The counts, and the toolchain of their programs.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) toolchain: Toolchain,
    pub(crate) costs: Vec<Cost>,
}

/// Everything that determines the instructions compiled from a source.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub(crate) rustc: String,
    /// `glibc 2.36`: its allocator and copy routines are counted, too.
    pub(crate) libc: String,
    /// `x86_64`.
    pub(crate) processor: String,
}

impl Toolchain {
    /// Returns the toolchain of this machine.
    pub(crate) fn here() -> Result<Self> {
        let line = |job: Job| job.text().map(|text| text.trim().to_owned());
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        Ok(Self {
            rustc: line(Job::new(rustc).arg("--version"))?,
            libc: line(Job::new("getconf").arg("GNU_LIBC_VERSION"))?,
            processor: std::env::consts::ARCH.to_owned(),
        })
    }
}

fn path() -> PathBuf {
    workspace::root().join("xtask/costs.json")
}

impl Record {
    /// Reads the committed record.
    pub(crate) fn read() -> Result<Self> {
        let read = files::json(&path()).and_then(|value| {
            serde_json::from_value(value).map_err(|why| failed!("{}: {why}", path().display()))
        });
        read.map_err(|why| failed!("{why}; run `cargo xtask costs --record` to write it"))
    }

    pub(crate) fn write(&self) -> Result<PathBuf> {
        fs::write(path(), self.to_json())?;
        Ok(path())
    }

    /// One line per cost, so that a change of one cost changes one line.
    fn to_json(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let Toolchain { rustc, libc, processor } = &self.toolchain;
        let mut text = String::from("{\n");
        for (key, value) in [("rustc", rustc), ("libc", libc), ("processor", processor)] {
            let _ = writeln!(text, "  \"{key}\": {},", quoted(value));
        }
        let lines = self.costs.iter().map(|cost| {
            format!(
                "    {{\"case\": {}, \"side\": {}, \"instructions\": {:.1}, \"allocations\": {:.2}}}",
                quoted(&cost.case),
                quoted(&cost.side),
                cost.instructions,
                cost.allocations
            )
        });
        let _ = write!(text, "  \"costs\": [\n{}\n  ]\n}}\n", lines.collect::<Vec<_>>().join(",\n"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_record_can_be_read() {
        let toolchain = Toolchain {
            rustc: "rustc 1.95.0 (\"x\")".to_owned(),
            libc: "glibc 2.36".to_owned(),
            processor: "x86_64".to_owned(),
        };
        let cost = |side: &str, instructions, allocations| Cost {
            case: "unary-64".to_owned(),
            side: side.to_owned(),
            instructions,
            allocations,
        };
        let costs = vec![cost("server", 3989.7, 4.11), cost("client", 4342.0, 1.0)];
        let record = Record { toolchain, costs };
        assert_eq!(serde_json::from_str::<Record>(&record.to_json()).unwrap(), record);
    }
}
