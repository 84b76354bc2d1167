//! The program that has the codecs, driven by the contract of `peers/README.md`: a request and an answer, a line of
//! JSON each. It times what it converts, so that its figures are those of one process.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::process::Process;

use super::line::{CodecLine, WARM_UPS};
use super::tables::{Allocations, CodecInfo, DataInfo, InstructionsOf, MessageSize};

/// The contract's name and version.
const SCHEMA: &str = "thalweg.codec-bench/1";
/// The exit code of a program that does not understand what it is asked for.
const BAD_ARGUMENTS: i32 = 2;

/// Which messages and which codecs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Where messages come from.
    pub from: Origin,
    /// These kinds only.
    pub messages: Option<Vec<String>>,
    /// These codecs only.
    pub codecs: Option<Vec<String>>,
}

/// Where messages come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Made from this number.
    Seed(u64),
    /// The user's own.
    Own {
        /// The file that declares their type.
        proto: PathBuf,
        /// Their type's full name.
        #[serde(rename = "type")]
        type_name: String,
        /// The file of messages.
        data: PathBuf,
    },
}

/// Why there are no codecs.
#[derive(Debug, thiserror::Error)]
pub enum NoCodecs {
    /// There is none of what was asked for.
    #[error("{0}")]
    Refused(String),
    /// The program cannot be had, or fails.
    #[error("{0}")]
    Failed(String),
}

/// The program, which waits for requests. It ends when this is dropped.
#[derive(Debug)]
pub struct CodecProgram {
    program: PathBuf,
    process: Process,
    answers: Receiver<String>,
    /// The codecs that take part, in the order of the tables.
    pub codecs: Vec<CodecInfo>,
    /// Kinds of message.
    pub data: Vec<DataInfo>,
    /// How large each codec makes each message.
    pub sizes: Vec<MessageSize>,
    /// Every codec at every message, for each operation; those that take turns are beside each other.
    pub lines: Vec<CodecLine>,
}

/// The program's first line.
#[derive(Deserialize)]
struct Begun {
    schema: String,
    codecs: Vec<CodecInfo>,
    data: Vec<DataInfo>,
    sizes: Vec<MessageSize>,
    lines: Vec<CodecLine>,
}

/// A line to the program.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Request<'a> {
    Convert { line: &'a CodecLine, warm_ups: u64, conversions: u64 },
    Allocations { line: &'a CodecLine },
    Instructions { folder: &'a Path },
    Messages { folder: &'a Path },
}

impl CodecProgram {
    /// Starts the program, on this processor if the kernel allows it.
    pub fn start(program: &Path, selection: &Selection, cpu: Option<&CpuList>) -> Result<Self, NoCodecs> {
        let selection = serde_json::to_string(selection)
            .map_err(|error| NoCodecs::Failed(format!("a path is not UTF-8: {error}")))?;
        let mut command = Command::new(program);
        command.arg("bench").arg(selection);
        Self::begin(command, program, cpu)
    }

    fn begin(mut command: Command, program: &Path, cpu: Option<&CpuList>) -> Result<Self, NoCodecs> {
        // Where it may not be kept on a processor, figures are noisier, and the report shows how much.
        let mut process = Process::spawn_told(&mut command, cpu)
            .or_else(|_| Process::spawn_told(&mut command, None))
            .map_err(|error| NoCodecs::Failed(said(program, &format!("cannot be started: {error}"))))?;
        let answers = process.lines();
        let Ok(first) = answers.recv() else { return Err(ended(program, process)) };
        let Begun { schema, codecs, data, sizes, lines } = read(&first)
            .map_err(|reason| NoCodecs::Failed(said(program, &format!("printed no {SCHEMA}: {reason}"))))?;
        if schema != SCHEMA {
            return Err(NoCodecs::Failed(said(program, &format!("speaks {schema}, not {SCHEMA}"))));
        }
        Ok(Self { program: program.to_owned(), process, answers, codecs, data, sizes, lines })
    }

    /// What the program answers by this name.
    fn ask<T: DeserializeOwned>(&mut self, request: &Request<'_>, name: &str) -> Result<T, String> {
        let request = serde_json::to_string(request).map_err(|error| error.to_string())?;
        let stdin = self.process.child.stdin.as_mut().expect("it was started to be told");
        // That it does not listen is found when it does not answer.
        let _ = writeln!(stdin, "{request}");
        let answer = self.answers.recv().map_err(|_| said(&self.program, "ended before it answered"))?;
        let mut answer: Map<String, Value> = read(&answer).unwrap_or_default();
        if let Some(Value::String(reason)) = answer.remove("error") {
            return Err(reason);
        }
        let found = answer.remove(name).and_then(|found| serde_json::from_value(found).ok());
        found.ok_or_else(|| said(&self.program, "does not answer as peers/README.md says"))
    }

    /// [`WARM_UPS`] conversions, then so many that are timed.
    pub(super) fn convert(&mut self, line: &CodecLine, conversions: u64) -> Result<Duration, String> {
        let request = Request::Convert { line, warm_ups: WARM_UPS, conversions };
        self.ask(&request, "elapsed_ns").map(Duration::from_nanos)
    }

    /// The process that converts.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// What the line asks of the allocator, for each conversion.
    pub(super) fn allocations(&mut self, line: &CodecLine) -> Result<Allocations, String> {
        self.ask(&Request::Allocations { line }, "allocations")
    }

    /// Instructions of all lines, counted in a run of its own; whatever it needs for that lies in `folder`.
    pub(super) fn instructions(&mut self, folder: &Path) -> Result<Vec<InstructionsOf>, String> {
        self.ask(&Request::Instructions { folder }, "instructions")
    }

    /// Writes the messages for programs that are not this one, and tells how many they are.
    pub(super) fn write_messages(&mut self, folder: &Path) -> Result<NonZeroUsize, String> {
        self.ask(&Request::Messages { folder }, "messages")
    }
}

/// Of a program that ended without a word of what it has.
fn ended(program: &Path, mut process: Process) -> NoCodecs {
    let status = process.child.wait();
    let last_words = process.last_words();
    match status {
        Ok(status) if status.code() == Some(BAD_ARGUMENTS) => NoCodecs::Refused(last_words),
        Ok(_) => NoCodecs::Failed(last_words),
        Err(error) => NoCodecs::Failed(said(program, &error.to_string())),
    }
}

fn said(program: &Path, what: &str) -> String {
    format!("`{} bench` {what}", program.display())
}

fn read<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::codec::line::Operation;

    /// Of a program that prints what this script prints.
    fn started(script: &str) -> Result<CodecProgram, NoCodecs> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script);
        CodecProgram::begin(shell, Path::new("peer"), None)
    }

    const BEGUN: &str = r#"{"schema":"thalweg.codec-bench/1","codecs":[],"data":[],"sizes":[],
        "lines":[{"data":"order","codec":"prost","operation":"round_trip"}]}"#;

    fn after_begun(script: &str) -> CodecProgram {
        let begun = BEGUN.replace('\n', "");
        started(&format!("echo '{begun}'; {script}")).unwrap()
    }

    #[test]
    fn requests_are_answered_line_by_line() {
        let mut codecs = after_begun(
            r#"read request; echo '{"elapsed_ns":1500}'
               read request; echo '{"error":"'$(echo "$request" | tr -d '"')'"}'
               read request; echo '{"allocations":{"blocks":1.0,"bytes":20.5}}'
               read request; echo '{"elapsed_ns":1}'
               read request"#,
        );
        let line = codecs.lines[0].clone();
        assert_eq!(line.operation, Operation::RoundTrip);
        assert_eq!(codecs.convert(&line, 10), Ok(Duration::from_nanos(1500)));
        let echoed =
            "{convert:{line:{data:order,codec:prost,operation:round_trip},warm_ups:50,conversions:7}}";
        assert_eq!(codecs.convert(&line, 7), Err(echoed.to_owned()));
        assert_eq!(codecs.allocations(&line), Ok(Allocations { blocks: 1.0, bytes: 20.5 }));
        let unlike = codecs.write_messages(Path::new("/tmp")).unwrap_err();
        assert_eq!(unlike, "`peer bench` does not answer as peers/README.md says");
        let ended = codecs.instructions(Path::new("/tmp")).unwrap_err();
        assert_eq!(ended, "`peer bench` ended before it answered");
        assert!(codecs.convert(&line, 10).is_err(), "who has ended answers nothing more");
    }

    #[test]
    fn a_program_that_does_not_begin_says_why() {
        let refused = started("echo 'unknown codec `xml`' >&2; exit 2").unwrap_err();
        assert!(matches!(&refused, NoCodecs::Refused(reason) if reason == "unknown codec `xml`"));
        let failed = started("echo 'no memory' >&2; exit 1").unwrap_err();
        assert!(matches!(&failed, NoCodecs::Failed(reason) if reason == "no memory"), "{failed}");
        let other = started(&format!("echo '{}'", BEGUN.replace('\n', "").replace("bench/1", "bench/2")))
            .unwrap_err();
        assert!(
            other.to_string().ends_with("speaks thalweg.codec-bench/2, not thalweg.codec-bench/1"),
            "{other}"
        );
        assert!(
            started("echo hello").unwrap_err().to_string().contains("printed no thalweg.codec-bench/1: ")
        );
    }
}
