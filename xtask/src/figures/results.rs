//! The results files: what was measured, where, when, of which commit, by which commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::failure::Result;
use crate::job::Job;
use crate::{files, workspace};

const SCHEMA: &str = "thalweg.figures/1";

/// All results files, by name.
#[derive(Clone)]
pub(super) struct Results {
    files: BTreeMap<String, Value>,
}

/// Where figures are from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Provenance {
    pub(super) commands: Vec<String>,
    pub(super) machine: String,
    pub(super) date: String,
    pub(super) commit: String,
}

fn folder() -> PathBuf {
    workspace::root().join("docs/results")
}

impl Results {
    pub(super) fn read() -> Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder())? {
            let path = entry?.path();
            if !files::has_extension(&path, "json") {
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let value = files::json(&path)?;
            ensure!(value["schema"] == SCHEMA, "{} is not of the schema {SCHEMA}", path.display());
            files.insert(name, value);
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(super) fn of(files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self { files: files.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// What was measured, by name.
    pub(super) fn all_figures(&self) -> BTreeMap<&str, &Value> {
        self.files.iter().map(|(name, file)| (name.as_str(), &file["figures"])).collect()
    }

    pub(super) fn provenance(&self, name: &str) -> Option<Provenance> {
        let file = self.files.get(name)?;
        let text = |key: &str| file[key].as_str().unwrap_or("unknown").to_owned();
        let commands = files::list(&file["commands"]).iter();
        Some(Provenance {
            commands: commands.filter_map(|command| command.as_str().map(str::to_owned)).collect(),
            machine: text("machine"),
            date: text("date"),
            commit: text("commit"),
        })
    }

    /// Where the figures of one file are from, behind a link to it.
    pub(super) fn caption_of(&self, name: &str, link: &str) -> String {
        let provenance = self.provenance(name);
        let Some(Provenance { commands, machine, date, commit }) = provenance else { return String::new() };
        format!("*{link}: `{}`; {date}; commit `{commit}`; {machine}.*", commands.join("`, `"))
    }

    /// The line above a table that says where its figures are from.
    pub(super) fn caption(&self, names: &[impl AsRef<str>]) -> String {
        let all: Vec<Provenance> = names.iter().filter_map(|name| self.provenance(name.as_ref())).collect();
        let distinct = |part: fn(&Provenance) -> Vec<String>| {
            let mut parts: Vec<String> = Vec::new();
            for part in all.iter().flat_map(part) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            parts
        };
        let quoted =
            |parts: Vec<String>| parts.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", ");
        let commits = distinct(|provenance| vec![provenance.commit.clone()]);
        format!(
            "{}\n\n*{}; commit {}; {}.*",
            quoted(distinct(|provenance| provenance.commands.clone())),
            distinct(|provenance| vec![provenance.date.clone()]).join(", "),
            quoted(commits),
            distinct(|provenance| vec![provenance.machine.clone()]).join("; "),
        )
    }
}

/// Where and when something was measured.
pub(super) struct Origin {
    machine: String,
    date: String,
}

impl Origin {
    pub(super) fn here_and_now() -> Result<Self> {
        let date = Job::new("date").words("-u +%F").text()?.trim().to_owned();
        Ok(Self { machine: machine()?, date })
    }

    /// As a study's `results.json` says.
    pub(super) fn of_study(study: &Value) -> Result<Self> {
        let of = |part: &Value| part.as_str().map(str::to_owned);
        let read = || {
            let machine = &study["machine"];
            let kernel = of(&machine["kernel"])?;
            let release: Vec<&str> = kernel.split(['.', '-']).take(2).collect();
            let machine = format!(
                "{}, {} processors, {}, {}",
                of(&machine["cpu"])?,
                machine["cores"].as_u64()?,
                release.join("."),
                of(&machine["tcp_congestion"])?
            );
            Some(Self { machine, date: of(&study["started"])?.get(..10)?.to_owned() })
        };
        read().ok_or_else(|| failed!("the study does not say where and when it was made"))
    }
}

/// Writes a results file.
pub(super) fn write(name: &str, command: &str, figures: &Value, origin: &Origin) -> Result<()> {
    let value = json!({
        "schema": SCHEMA,
        "commands": [command],
        "machine": origin.machine,
        "date": origin.date,
        "commit": Job::new("git").words("rev-parse --short=10 HEAD").text()?.trim(),
        "figures": figures,
    });
    fs::create_dir_all(folder())?;
    let path = folder().join(format!("{name}.json"));
    // A study notes where it wrote: within the workspace, since where that lies is nobody's business.
    let text = format!("{value:#}\n").replace(&format!("{}/", workspace::root().display()), "");
    fs::write(&path, text)?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// The processor, how many of it, the kernel, and TCP's congestion control: some send by a timer, which is what is
/// measured over loopback then.
fn machine() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release: Vec<&str> = kernel.trim().split('.').take(2).collect();
    let count = std::thread::available_parallelism()?;
    let congestion = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    Ok(format!("{model}, {count} processors, Linux {}, {}", release.join("."), congestion.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Results;

    #[test]
    fn a_caption_names_each_thing_once() {
        let date = "2026-11-22";
        let file = |command: &str| {
            let commands = [command];
            json!({"commands": commands, "machine": "a machine", "date": date, "commit": "abc"})
        };
        let results = Results::of([("one", file("bench one")), ("two", file("bench two"))]);
        assert_eq!(
            results.caption(&["one", "two"]),
            "`bench one`, `bench two`\n\n*2026-11-22; commit `abc`; a machine.*"
        );
    }
}
