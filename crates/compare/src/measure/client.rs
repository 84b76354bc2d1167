//! One window: a `thalweg load` of its own, so that each begins alike and its processor time is its own.

use std::process::Command;
use std::time::Duration;

use thalweg_load::peer::{Announcement, ConductError, Watch, conduct};
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::usage::{Sample, Side, Sides, Usage};

use super::error::MeasureError;
use super::plan::{Plan, SidePlan};
use crate::comparison::WindowRun;

/// How long a client may take beyond its times: calls under way at the end come back within their own timeout.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that is ready to be started.
pub(super) struct Client<'a> {
    pub(super) plan: &'a Plan,
    pub(super) side: &'a SidePlan,
    /// The server's process.
    pub(super) server: u32,
    pub(super) interrupt: &'a Interrupt,
}

/// The usage of both processes in the measured time.
struct Used {
    sides: Sides,
    begin: Option<Sample>,
    usage: Option<Usage>,
}

impl Watch for Used {
    fn announced(&mut self, announcement: Announcement) {
        // Unknown if the kernel does not tell.
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
    /// Runs it to its end: what it found, and the server's processor time in the measured time, ns.
    pub(super) fn run(&self) -> Result<(WindowRun, Option<u64>), MeasureError> {
        let failed = |why: String| MeasureError::Client { name: self.side.name.clone(), why };
        let Plan { client_cpus, server_cpus, warm_up, window, .. } = self.plan;
        let watch = |client: u32| Used {
            sides: Sides {
                client: Side::of(client, client_cpus.clone()),
                server: Some(Side::of(self.server, server_cpus.clone())),
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
        if self.interrupt.is_asked() {
            return Err(MeasureError::Interrupted);
        }
        // A run whose calls failed exits with 1 and still says what it saw: its JSON counts, and not its code.
        let mut run: WindowRun = serde_json::from_str(&client.text).map_err(|error| {
            let words = client.process.last_words();
            failed(match words.strip_prefix("error: ") {
                Some(words) => words.to_owned(),
                None if client.text.is_empty() => words,
                None => format!("its answer cannot be read: {error}"),
            })
        })?;
        let usage = client.watch.usage;
        // The client knows of itself; who kept the server from its CPU is seen from here.
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
