//! Runs one window as a separate `thalweg load` process, with equal starting conditions and its own CPU time.

use std::process::Command;
use std::time::Duration;

use thalweg_load::peer::{Announcement, ConductError, Watch, conduct};
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::usage::{MeasuredProcesses, Sample, SideProcesses, Usage};

use super::error::MeasureError;
use super::plan::{Plan, SidePlan};
use crate::comparison::WindowRun;

/// Time that a client may take beyond warm-up and window: calls in flight at the end have their own timeout.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that is ready to start.
pub(super) struct Client<'a> {
    pub(super) plan: &'a Plan,
    pub(super) side: &'a SidePlan,
    /// Process id of the server.
    pub(super) server: u32,
    pub(super) interrupt: &'a Interrupt,
}

/// CPU usage of both processes in the measured time.
struct ServerCpuObserver {
    sides: MeasuredProcesses,
    begin: Option<Sample>,
    usage: Option<Usage>,
}

impl Watch for ServerCpuObserver {
    fn announced(&mut self, announcement: Announcement) {
        // `None` if the kernel does not report it.
        let now = self.sides.sample().ok();
        match announcement {
            Announcement::Measuring => self.begin = now,
            Announcement::Measured => {
                self.usage = self.begin.as_ref().zip(now).map(|(begin, now)| now.since(begin));
            }
            Announcement::First | Announcement::Connected => {}
        }
    }
}

impl Client<'_> {
    /// Runs the client to its end. Returns its result, and the server's CPU time in the measured time, in ns.
    pub(super) fn run(&self) -> Result<(WindowRun, Option<u64>), MeasureError> {
        let failed = |why: String| MeasureError::Client { name: self.side.name.clone(), why };
        let Plan { client_cpus, server_cpus, warm_up, window, .. } = self.plan;
        let watch = |client: u32| ServerCpuObserver {
            sides: MeasuredProcesses {
                client: SideProcesses::of(client, client_cpus.clone()),
                server: Some(SideProcesses::of(self.server, server_cpus.clone())),
            },
            begin: None,
            usage: None,
        };
        let patience = *warm_up + *window + PATIENCE;
        let conducted = conduct(&mut self.command(), client_cpus.as_ref(), patience, self.interrupt, watch);
        let client = conducted.map_err(|error| match error {
            ConductError::Interrupted => MeasureError::Interrupted,
            error => failed(error.to_string()),
        })?;
        if self.interrupt.is_requested() {
            return Err(MeasureError::Interrupted);
        }
        // A run with failed calls exits with 1 but still prints its result: the JSON counts, not the exit code.
        let mut run: WindowRun = serde_json::from_str(&client.text).map_err(|error| {
            let words = client.process.stderr_tail_or_default();
            failed(match words.strip_prefix("error: ") {
                Some(words) => words.to_owned(),
                None if client.text.is_empty() => words,
                None => format!("failed to read its result: {error}"),
            })
        })?;
        let usage = client.watch.usage;
        // The client checks itself; only this process knows what kept the server from its CPU.
        if let (WindowRun::Method(run), Some(usage)) = (&mut run, &usage)
            && run.is_valid()
        {
            run.not_valid.reasons.extend(usage.server.kept_waiting("server", usage.window_ns));
        }
        Ok((run, usage.map(|usage| usage.server.cpu_ns())))
    }

    fn command(&self) -> Command {
        let Plan { program, load, window, warm_up, .. } = self.plan;
        let micros = |duration: &Duration| format!("{}us", duration.as_micros());
        let mut command = Command::new(program);
        command.args(["load", self.side.target.as_str()]).args(load);
        command.args([
            "-z",
            &micros(window),
            "--warmup",
            &micros(warm_up),
            "-O",
            "json",
            "--announce",
            "--quiet",
        ]);
        command
    }
}
