//! Queries programs for their versions and settings.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use thalweg_measure::cpus::{CpuAssignment, CpuList};
use thalweg_measure::process::Process;

use super::program::Program;
use crate::load::StackInfo;
use crate::stack::{Setting, Stack};

/// Time limit for a program's response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The command that lists settings.
const SETTINGS: &str = "settings";
/// The setting that the lab's options change.
const THREADS: &str = "threads";

impl Program {
    /// Describes a stack of this program on these CPUs.
    ///
    /// # Errors
    ///
    /// Returns an error if the program's output does not follow `peers/README.md`.
    pub fn info(&self, stack: Stack, cpus: &CpuAssignment) -> Result<StackInfo, String> {
        let settings = self.settings(stack.variant(), cpus)?;
        Ok(StackInfo { stack, version: self.version.clone(), settings })
    }

    /// Queries the settings of client and server of this variant, each on its CPUs, since defaults depend on their
    /// number.
    pub(super) fn settings(
        &self,
        variant: Option<&str>,
        cpus: &CpuAssignment,
    ) -> Result<Vec<Setting>, String> {
        let on = |cpus: Option<&CpuList>| {
            let lines = query_program(&mut self.command(SETTINGS), cpus)?;
            of_variant(&lines, variant).ok_or_else(|| contract_violation(&self.path, SETTINGS))
        };
        let (client, server) = (on(cpus.client_cpus.as_ref())?, on(cpus.server_cpus.as_ref())?);
        let mut settings = of_sides(&client, &server);
        for (side, threads) in [("client", cpus.client_threads), ("server", cpus.server_threads)] {
            let of_side = settings.iter_mut().filter(|it| it.side == side && it.name.starts_with(THREADS));
            for (setting, threads) in of_side.zip(threads) {
                setting.value = threads.to_string();
            }
        }
        Ok(settings)
    }
}

/// Returns the settings of a variant. Its own lines override those of all variants.
fn of_variant(lines: &[String], variant: Option<&str>) -> Option<Vec<Setting>> {
    let lines = lines.iter().map(|line| Setting::in_line(line)).collect::<Option<Vec<_>>>()?;
    let (of_all, of_some): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(_, of)| of.is_none());
    let mut settings: Vec<_> = of_all.into_iter().map(|(setting, _)| setting).collect();
    for (own, of) in of_some {
        if of.as_deref() != variant {
            continue;
        }
        match settings.iter_mut().find(|it| (&it.side, &it.name) == (&own.side, &own.name)) {
            Some(setting) => *setting = own,
            None => settings.push(own),
        }
    }
    Some(settings)
}

/// Merges the settings as reported by client and server. A shared setting with two values becomes two.
fn of_sides(client: &[Setting], server: &[Setting]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for of_client in client {
        let is_same = |it: &&Setting| (&it.side, &it.name) == (&of_client.side, &of_client.name);
        let of_server = server.iter().find(is_same).unwrap_or(of_client).clone();
        let of_client = of_client.clone();
        match of_client.side.as_str() {
            "both" if of_client.value != of_server.value => {
                settings.push(Setting { side: "server".to_owned(), ..of_server });
                settings.push(Setting { side: "client".to_owned(), ..of_client });
            }
            "server" => settings.push(of_server),
            _ => settings.push(of_client),
        }
    }
    settings
}

/// Runs the command on these CPUs and returns the lines it prints.
pub(crate) fn query_program(command: &mut Command, cpus: Option<&CpuList>) -> Result<Vec<String>, String> {
    let words = command.get_args().map(|word| word.to_string_lossy());
    let words =
        [command.get_program().to_string_lossy()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
    let failure = |what: &str| format!("`{words}` {what}");
    let mut process =
        Process::spawn(command, cpus).map_err(|error| failure(&format!("failed to start: {error}")))?;
    let printed = process.lines();
    let deadline = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    loop {
        match printed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(failure(&format!("did not exit within {} s", PATIENCE.as_secs())));
            }
        }
    }
    match process.child.wait() {
        Ok(status) if status.success() => Ok(lines),
        Ok(status) => Err(failure(&format!("failed ({status}): {}", process.stderr_tail_or_default()))),
        Err(error) => Err(failure(&error.to_string())),
    }
}

pub(crate) fn contract_violation(path: &Path, command: &str) -> String {
    format!("invalid output of `{} {command}`; see peers/README.md", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_has_its_own_settings() {
        let lines = ["both\tstreams\towned\t", "both\tpolling\ton\t", "both\tstreams\treused\t\tin-place"];
        let lines = lines.map(str::to_owned);
        let values = |variant| {
            let settings = of_variant(&lines, variant).unwrap();
            settings.into_iter().map(|it| it.value).collect::<Vec<_>>()
        };
        assert_eq!(values(None), ["owned", "on"]);
        assert_eq!(values(Some("in-place")), ["reused", "on"]);
        assert_eq!(values(Some("other")), ["owned", "on"]);
        assert!(of_variant(&["both\tstreams".to_owned()], None).is_none());
    }

    #[test]
    fn setting_of_both_sides_is_split_where_their_cpus_differ() {
        let settings = |threads: &str| {
            let lines =
                ["both\tTCP_NODELAY\ton\t", &format!("both\tthreads\t{threads}\t"), "server\tstreams\t9\t"];
            lines.iter().map(|line| Setting::in_line(line).unwrap().0).collect::<Vec<_>>()
        };
        let shown = |client: &str, server: &str| {
            let all = of_sides(&settings(client), &settings(server));
            all.iter().map(|it| format!("{} {}", it.side, it.value)).collect::<Vec<_>>()
        };
        assert_eq!(shown("2", "2"), ["both on", "both 2", "server 9"]);
        assert_eq!(shown("1", "3"), ["both on", "server 3", "client 1", "server 9"]);
    }
}
