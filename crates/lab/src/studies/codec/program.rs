//! Client of the codec program, which follows the contract of `peers/README.md`: each request and response is a line
//! of JSON. The program times its own conversions, so that all figures come from one process.

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

/// Name and version of the contract.
const SCHEMA: &str = "thalweg.codec-bench/1";
/// Exit code of a program that does not understand the request.
const BAD_ARGUMENTS: i32 = 2;

/// Selection of messages and codecs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Source of the messages.
    pub from: Origin,
    /// Kinds of message to use; `None` for all.
    pub messages: Option<Vec<String>>,
    /// Codecs to use; `None` for all.
    pub codecs: Option<Vec<String>>,
}

/// Source of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Generated from this seed.
    Seed(u64),
    /// Supplied by the user.
    Own {
        /// File that declares their type.
        proto: PathBuf,
        /// Full name of their type.
        #[serde(rename = "type")]
        type_name: String,
        /// File with the messages.
        data: PathBuf,
    },
}

/// Error that leaves a study without codecs.
#[derive(Debug, thiserror::Error)]
pub enum NoCodecs {
    /// The selection matches nothing.
    #[error("{0}")]
    InvalidSelection(String),
    /// The program is not available, or failed.
    #[error("{0}")]
    Failed(String),
}

/// The running codec program, which waits for requests. Stopped on drop.
#[derive(Debug)]
pub struct CodecProgram {
    program: PathBuf,
    process: Process,
    responses: Receiver<String>,
    /// Participating codecs, in the order of the tables.
    pub codecs: Vec<CodecInfo>,
    /// Kinds of message.
    pub data: Vec<DataInfo>,
    /// Size of each message with each codec.
    pub sizes: Vec<MessageSize>,
    /// Every codec, message and operation. Lines that take turns are adjacent.
    pub lines: Vec<CodecLine>,
}

/// First line printed by the program.
#[derive(Deserialize)]
struct Hello {
    schema: String,
    codecs: Vec<CodecInfo>,
    data: Vec<DataInfo>,
    sizes: Vec<MessageSize>,
    lines: Vec<CodecLine>,
}

/// Request to the program.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Request<'a> {
    Convert { line: &'a CodecLine, warm_ups: u64, conversions: u64 },
    Allocations { line: &'a CodecLine },
    Instructions { folder: &'a Path },
    Messages { folder: &'a Path },
}

impl CodecProgram {
    /// Starts the program, pinned to this processor if the kernel allows it.
    pub fn start(program: &Path, selection: &Selection, cpu: Option<&CpuList>) -> Result<Self, NoCodecs> {
        let selection = serde_json::to_string(selection)
            .map_err(|error| NoCodecs::Failed(format!("a path is not UTF-8: {error}")))?;
        let mut command = Command::new(program);
        command.arg("bench").arg(selection);
        Self::spawn(command, program, cpu)
    }

    fn spawn(mut command: Command, program: &Path, cpu: Option<&CpuList>) -> Result<Self, NoCodecs> {
        // Without pinning, figures are noisier, and the report shows by how much.
        let mut process = Process::spawn_with_stdin(&mut command, cpu)
            .or_else(|_| Process::spawn_with_stdin(&mut command, None))
            .map_err(|error| {
                NoCodecs::Failed(program_error(program, &format!("failed to start: {error}")))
            })?;
        let responses = process.lines();
        let Ok(first) = responses.recv() else { return Err(start_error(program, process)) };
        let Hello { schema, codecs, data, sizes, lines } = read(&first).map_err(|reason| {
            NoCodecs::Failed(program_error(program, &format!("printed invalid {SCHEMA}: {reason}")))
        })?;
        if schema != SCHEMA {
            return Err(NoCodecs::Failed(program_error(
                program,
                &format!("speaks {schema}, expected {SCHEMA}"),
            )));
        }
        Ok(Self { program: program.to_owned(), process, responses, codecs, data, sizes, lines })
    }

    /// Sends a request and returns the field `name` of the response.
    fn request<T: DeserializeOwned>(&mut self, request: &Request<'_>, name: &str) -> Result<T, String> {
        let request = serde_json::to_string(request).map_err(|error| error.to_string())?;
        let stdin = self.process.child.stdin.as_mut().expect("stdin is piped");
        // A closed pipe is detected by the missing response.
        let _ = writeln!(stdin, "{request}");
        let answer =
            self.responses.recv().map_err(|_| program_error(&self.program, "exited before it responded"))?;
        let mut answer: Map<String, Value> = read(&answer).unwrap_or_default();
        if let Some(Value::String(reason)) = answer.remove("error") {
            return Err(reason);
        }
        let found = answer.remove(name).and_then(|found| serde_json::from_value(found).ok());
        found.ok_or_else(|| program_error(&self.program, "printed an invalid response; see peers/README.md"))
    }

    /// Makes [`WARM_UPS`] conversions, then times `conversions`.
    pub(super) fn convert(&mut self, line: &CodecLine, conversions: u64) -> Result<Duration, String> {
        let request = Request::Convert { line, warm_ups: WARM_UPS, conversions };
        self.request(&request, "elapsed_ns").map(Duration::from_nanos)
    }

    /// Returns the process that converts.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// Returns the line's allocations per conversion.
    pub(super) fn allocations(&mut self, line: &CodecLine) -> Result<Allocations, String> {
        self.request(&Request::Allocations { line }, "allocations")
    }

    /// Returns the instructions of all lines, counted in a separate run. Its temporary files are in `folder`.
    pub(super) fn instructions(&mut self, folder: &Path) -> Result<Vec<InstructionsOf>, String> {
        self.request(&Request::Instructions { folder }, "instructions")
    }

    /// Writes the messages for other programs and returns their number.
    pub(super) fn write_messages(&mut self, folder: &Path) -> Result<NonZeroUsize, String> {
        self.request(&Request::Messages { folder }, "messages")
    }
}

/// Returns the error for a program that exited before its first line.
fn start_error(program: &Path, mut process: Process) -> NoCodecs {
    let status = process.child.wait();
    let last_words = process.stderr_tail_or_default();
    match status {
        Ok(status) if status.code() == Some(BAD_ARGUMENTS) => NoCodecs::InvalidSelection(last_words),
        Ok(_) => NoCodecs::Failed(last_words),
        Err(error) => NoCodecs::Failed(program_error(program, &error.to_string())),
    }
}

fn program_error(program: &Path, what: &str) -> String {
    format!("`{} bench` {what}", program.display())
}

fn read<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::codec::line::Operation;

    /// Starts a shell script in place of the program.
    fn start_script(script: &str) -> Result<CodecProgram, NoCodecs> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script);
        CodecProgram::spawn(shell, Path::new("peer"), None)
    }

    const HELLO: &str = r#"{"schema":"thalweg.codec-bench/1","codecs":[],"data":[],"sizes":[],
        "lines":[{"data":"order","codec":"prost","operation":"round_trip"}]}"#;

    fn start_after_hello(script: &str) -> CodecProgram {
        let hello = HELLO.replace('\n', "");
        start_script(&format!("echo '{hello}'; {script}")).unwrap()
    }

    #[test]
    fn requests_are_answered_line_by_line() {
        let mut codecs = start_after_hello(
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
        assert_eq!(unlike, "`peer bench` printed an invalid response; see peers/README.md");
        let ended = codecs.instructions(Path::new("/tmp")).unwrap_err();
        assert_eq!(ended, "`peer bench` exited before it responded");
        assert!(codecs.convert(&line, 10).is_err(), "an ended program does not respond");
    }

    #[test]
    fn program_that_fails_to_start_has_a_reason() {
        let refused = start_script("echo 'unknown codec `xml`' >&2; exit 2").unwrap_err();
        assert!(matches!(&refused, NoCodecs::InvalidSelection(reason) if reason == "unknown codec `xml`"));
        let failed = start_script("echo 'no memory' >&2; exit 1").unwrap_err();
        assert!(matches!(&failed, NoCodecs::Failed(reason) if reason == "no memory"), "{failed}");
        let other =
            start_script(&format!("echo '{}'", HELLO.replace('\n', "").replace("bench/1", "bench/2")))
                .unwrap_err();
        assert!(
            other.to_string().ends_with("speaks thalweg.codec-bench/2, expected thalweg.codec-bench/1"),
            "{other}"
        );
        assert!(
            start_script("echo hello")
                .unwrap_err()
                .to_string()
                .contains("printed invalid thalweg.codec-bench/1: ")
        );
    }
}
