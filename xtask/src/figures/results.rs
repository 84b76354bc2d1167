//! The results files: figures with their machine, date, commit and commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Result;
use crate::job::Job;
use crate::{files, workspace};

const SCHEMA: &str = "thalweg.figures/1";

#[derive(Clone)]
pub(super) struct Results {
    files: BTreeMap<String, ResultsFile>,
}

/// Figures and their origin.
#[derive(Clone, Deserialize)]
pub(super) struct ResultsFile {
    #[serde(default)]
    schema: String,
    commands: Vec<String>,
    machine: String,
    pub(super) date: String,
    pub(super) commit: String,
    #[serde(default)]
    figures: Value,
}

fn folder() -> PathBuf {
    workspace::root().join("docs/results")
}

impl Results {
    pub(super) fn read() -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in files::below(&folder())?.iter().filter(|path| files::has_extension(path, "json")) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let file: ResultsFile = serde_json::from_value(files::json(path)?)
                .map_err(|why| failed!("{}: {why}", path.display()))?;
            ensure!(file.schema == SCHEMA, "{} does not have the schema {SCHEMA}", path.display());
            files.insert(name, file);
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(super) fn of(files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let file = |(name, value): (&str, Value)| (name.to_owned(), serde_json::from_value(value).unwrap());
        Self { files: files.into_iter().map(file).collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&ResultsFile> {
        self.files.get(name)
    }

    /// Returns all figures by name.
    pub(super) fn all_figures(&self) -> BTreeMap<&str, &Value> {
        self.files.iter().map(|(name, file)| (name.as_str(), &file.figures)).collect()
    }

    /// Caption with the origin of one file's figures, after a link to the file.
    pub(super) fn caption_of(&self, name: &str, link: &str) -> String {
        let Some(ResultsFile { commands, machine, date, commit, .. }) = self.get(name) else {
            return String::new();
        };
        format!("*{link}: `{}`; {date}; commit `{commit}`; {machine}.*", commands.join("`, `"))
    }

    /// Table cells with date, commit and machine of these results.
    pub(super) fn origin(&self, names: &[String]) -> Option<String> {
        let all = names.iter().map(|name| self.get(name)).collect::<Option<Vec<_>>>()?;
        Some(format!(
            "{} | `{}` | {}",
            distinct(all.iter().map(|it| &it.date), ", "),
            distinct(all.iter().map(|it| &it.commit), "`, `"),
            distinct(all.iter().map(|it| &it.machine), "; "),
        ))
    }

    /// Caption above a table with the origin of its figures.
    pub(super) fn caption(&self, names: &[impl AsRef<str>]) -> String {
        let all = || names.iter().filter_map(move |name| self.get(name.as_ref()));
        format!(
            "`{}`\n\n*{}; commit `{}`; {}.*",
            distinct(all().flat_map(|it| &it.commands), "`, `"),
            distinct(all().map(|it| &it.date), ", "),
            distinct(all().map(|it| &it.commit), "`, `"),
            distinct(all().map(|it| &it.machine), "; "),
        )
    }
}

/// Joins the texts without duplicates, in order of first occurrence.
fn distinct<'t>(texts: impl Iterator<Item = &'t String>, between: &str) -> String {
    let mut known = BTreeSet::new();
    texts.filter(|text| known.insert(*text)).map(String::as_str).collect::<Vec<_>>().join(between)
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

    /// Reads the origin from a study's `results.json`.
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
        read().ok_or_else(|| failed!("the study does not record its machine and date"))
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
    // A study records its output paths: make them relative to the workspace, whose location is private.
    let text = format!("{value:#}\n").replace(&format!("{}/", workspace::root().display()), "");
    fs::write(&path, text)?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// Describes the processor, their number, the kernel, and TCP's congestion control. Some congestion controls pace by a
/// timer, which dominates measurements over loopback.
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
    fn caption_names_each_thing_once() {
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
