//! Makes the runs by starting this command again.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use thalweg_measure::interrupt::Interrupt;

use super::jvm_log::java_options;
use super::original::Run;
use super::publication::Publication;
use super::results::RunResult;
use crate::report::REPORT_FILE;

/// File in a run's folder that receives its printed output.
const PRINTED: &str = "report.txt";
/// Time limit for a run to stop, since it writes its report first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `program`, which is this command, with its results in a subfolder of `directory`. Its stderr goes to this
/// process's stderr. An interrupt stops the run but keeps its results so far.
pub fn make(
    program: &Path,
    publication: Publication,
    run: Run,
    directory: &Path,
    interrupt: &Interrupt,
) -> RunResult {
    let began = Instant::now();
    let folder = directory.join(run.name);
    let failed = spawn_run(program, &run, &folder).and_then(|child| wait(child, interrupt));
    let failed = match failed {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("`thalweg {}` failed: {status}", run.arguments.join(" "))),
        Err(error) => Some(format!("failed to create it: {error}")),
    };
    RunResult {
        name: run.name.to_owned(),
        publication,
        about: run.about.to_owned(),
        arguments: run.arguments,
        took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        has_page: folder.join(REPORT_FILE).is_file(),
        failed,
    }
}

fn spawn_run(program: &Path, run: &Run, folder: &Path) -> io::Result<Child> {
    // Results of an earlier run are removed. A folder of this name without a run's output is left alone.
    if folder.join(PRINTED).is_file() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        let why = format!("{} exists and is not from a run; use another folder with --out", folder.display());
        return Err(io::Error::other(why));
    }
    let mut command = Command::new(program);
    command.args(&run.arguments).arg("--out").arg(folder);
    if run.keeps_jvm_logs {
        // If the log's path cannot be passed, no log is kept and claims that need it report that.
        let ours = java_options(&fs::canonicalize(folder)?);
        let theirs = env::var("JAVA_TOOL_OPTIONS").ok();
        let options: Vec<String> = theirs.into_iter().chain(ours).collect();
        command.env("JAVA_TOOL_OPTIONS", options.join(" "));
    }
    // In its own process group the run gets the interrupt only once, from this process.
    command.process_group(0).stdin(Stdio::null()).stdout(File::create(folder.join(PRINTED))?).spawn()
}

fn wait(mut child: Child, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let mut terminated_at: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match terminated_at {
            // Its other children, such as a build of peers, belong to the same group.
            None if interrupt.is_requested() => {
                terminated_at = Some(Instant::now());
                killpg(group, Signal::SIGTERM)?;
            }
            Some(at) if at.elapsed() > PATIENCE => killpg(group, Signal::SIGKILL)?,
            _ => {}
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch;

    /// Runs a shell script in place of this command.
    fn run(script: &str, interrupt: &Interrupt) -> (RunResult, std::path::PathBuf) {
        let directory = scratch(&format!("published-make-{}", script.len()));
        let run = Run {
            name: "run",
            about: "a test",
            arguments: vec!["-c".to_owned(), script.to_owned()],
            keeps_jvm_logs: true,
        };
        let result = make(Path::new("/bin/sh"), Publication::Qt, run, &directory, interrupt);
        (result, directory)
    }

    #[test]
    fn output_of_run_is_kept() {
        let (result, directory) = run("echo $JAVA_TOOL_OPTIONS $0 $1", &Interrupt::default());
        assert_eq!(result.failed, None);
        let printed = fs::read_to_string(directory.join("run").join(PRINTED)).unwrap();
        assert!(printed.contains("-Xlog:gc") && printed.contains("--out /"), "{printed}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn only_leftovers_of_earlier_run_are_removed() {
        let directory = scratch("published-make-again");
        let folder = directory.join("run");
        let run = || Run {
            name: "run",
            about: "a test",
            arguments: vec!["-c".to_owned(), "true".to_owned()],
            keeps_jvm_logs: false,
        };
        let make =
            || make(Path::new("/bin/sh"), Publication::Qt, run(), &directory, &Interrupt::default()).failed;
        assert_eq!(make(), None);
        fs::write(folder.join("left"), "").unwrap();
        assert_eq!(make(), None);
        assert!(!folder.join("left").exists());
        fs::remove_file(folder.join(PRINTED)).unwrap();
        fs::write(folder.join("thesis"), "").unwrap();
        assert!(make().is_some_and(|reason| reason.contains("not from a run")));
        assert!(folder.join("thesis").exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn exit_status_of_run_is_reported() {
        let (result, directory) = run("exit 3", &Interrupt::default());
        assert!(result.failed.is_some_and(|reason| reason.contains("exit status: 3")));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn interrupt_stops_run() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let (result, directory) = run("trap 'exit 130' TERM; while :; do sleep 0.05; done", &interrupt);
        assert!(result.failed.is_some(), "{result:?}");
        fs::remove_dir_all(directory).unwrap();
    }
}
