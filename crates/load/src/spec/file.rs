//! Scenario files: flows of several steps in TOML.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use thalweg::Encoding;
use thalweg_dynamic::MethodNameError;
use thalweg_dynamic::metadata::{self, Entry};
use thalweg_dynamic::texts::BYTE_ORDER_MARK;

use super::deadline::Deadline;
use super::error::SpecError;
use super::step::{FlowSpec, StepSpec};
use super::stream::StreamSpec;
use crate::scenario::Think;

/// Content of a scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    name: Option<String>,
    flow: Vec<FileFlow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFlow {
    name: Option<String>,
    #[serde(default = "default_weight")]
    weight: u32,
    step: Vec<FileStep>,
}

fn default_weight() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStep {
    call: String,
    name: Option<String>,
    data: Option<String>,
    input: Option<String>,
    #[serde(default)]
    order: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    timeout: Option<String>,
    compress: Option<String>,
    messages: Option<u64>,
    message_rate: Option<String>,
    stream_for: Option<String>,
    responses: Option<u64>,
    outstanding: Option<u64>,
    #[serde(default)]
    check: Vec<String>,
    #[serde(default)]
    keep: BTreeMap<String, String>,
    think: Option<String>,
}

/// Options of steps that do not set their own.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'a> {
    /// Default deadline of each call.
    pub deadline: Deadline,
    /// Metadata of each call, before that of the step.
    pub metadata: &'a [Entry],
    /// Compression of requests.
    pub compress: Option<Encoding>,
    /// Largest response, in bytes.
    pub max_message_bytes: usize,
    /// Whether requests are templates.
    pub has_templates: bool,
}

/// Returns the scenario's name and its flows.
pub(super) fn read(path: &Path, defaults: &Defaults<'_>) -> Result<(String, Vec<FlowSpec>), SpecError> {
    let failed = |why: String| SpecError::invalid(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| {
        SpecError::failed(format!("{}: failed to read the file: {error}", path.display()))
    })?;
    let file: ScenarioFile = toml::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
        .map_err(|error| failed(format!("invalid scenario: {}", error.to_string().trim())))?;
    let named = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = file.name.or(named).unwrap_or_else(|| "scenario".to_owned());
    let mut flows = Vec::new();
    for (number, flow) in (1..).zip(file.flow) {
        let name = flow.name.unwrap_or_else(|| format!("flow {number}"));
        let mut steps: Vec<StepSpec> = Vec::new();
        for (number, step) in (1..).zip(flow.step) {
            let step = step
                .asked(path, defaults)
                .map_err(|why| failed(format!("step {number} of {name}: {why}")))?;
            if steps.iter().any(|other| other.name == step.name) {
                return Err(failed(format!(
                    "duplicate step in {name}: `{}`; use different names",
                    step.name
                )));
            }
            steps.push(step);
        }
        if steps.is_empty() {
            return Err(failed(format!("{name} has no steps")));
        }
        if flows.iter().any(|other: &FlowSpec| other.name == name) {
            return Err(failed(format!("duplicate flow `{name}`")));
        }
        flows.push(FlowSpec { name, weight: flow.weight, steps });
    }
    if flows.iter().all(|flow| flow.weight == 0) {
        return Err(failed("no flow has a weight above 0".to_owned()));
    }
    Ok((name, flows))
}

impl FileStep {
    fn asked(self, file: &Path, defaults: &Defaults<'_>) -> Result<StepSpec, String> {
        let time = |name: &str, text: Option<String>| {
            let parse = |text: String| {
                humantime::parse_duration(&text)
                    .map_err(|_| format!("{name}: expected a time such as 1s, found `{text}`"))
            };
            text.map(parse).transpose()
        };
        let mut entries = defaults.metadata.to_vec();
        for (name, value) in &self.metadata {
            entries.push(metadata::parse(&format!("{name}: {value}"))?);
        }
        let keep = self
            .keep
            .iter()
            .map(|(name, place)| {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                if name.is_empty() || !name.bytes().all(is_name) {
                    return Err(format!("keep: invalid name `{name}`; use letters, digits and _"));
                }
                Ok((name.clone(), place.parse().map_err(|why| format!("keep: {why}"))?))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let message_rate = self.message_rate.map(|text| text.parse()).transpose();
        Ok(StepSpec {
            benchmark: None,
            name: self.name.unwrap_or_else(|| self.call.clone()),
            method: self.call.parse().map_err(|error: MethodNameError| error.to_string())?,
            data: self.data.map(|data| relative_to(file, data)).into_iter().collect(),
            input: match self.input {
                Some(name) => Some(name.parse().map_err(|error| format!("input: {error}"))?),
                None => None,
            },
            order: self.order.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            has_templates: defaults.has_templates,
            metadata: entries,
            deadline: match time("timeout", self.timeout)? {
                None => defaults.deadline,
                timeout => timeout.into(),
            },
            compress: match self.compress {
                Some(name) => Some(encoding(&name)?),
                None => defaults.compress,
            },
            max_message_bytes: defaults.max_message_bytes,
            stream: StreamSpec {
                messages: self.messages,
                message_rate: message_rate.map_err(|error| format!("message_rate: {error}"))?,
                lasts: time("stream_for", self.stream_for)?,
                responses: self.responses,
                outstanding: self.outstanding,
                lasts_to_end: false,
            },
            checks: self.check.iter().map(|text| text.parse()).collect::<Result<_, String>>()?,
            keep,
            think: self.think.as_deref().map(think).transpose()?,
        })
    }
}

/// Parses the name of a compression.
fn encoding(name: &str) -> Result<Encoding, String> {
    match name.to_ascii_lowercase().as_str() {
        "gzip" => Ok(Encoding::Gzip),
        "deflate" => Ok(Encoding::Deflate),
        _ => Err(format!("compress: unknown encoding `{name}`; use gzip or deflate")),
    }
}

/// Parses `100ms`, or `50ms..200ms`.
fn think(text: &str) -> Result<Think, String> {
    let time = |text: &str| {
        humantime::parse_duration(text.trim())
            .map_err(|_| format!("invalid time `{text}`; use 100ms or 50ms..200ms"))
    };
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let think = Think { least: time(least)?, most: time(most)? };
    if think.most < think.least {
        return Err(format!("invalid range `{text}`; put the shorter time first"));
    }
    Ok(think)
}

/// Resolves a file name relative to the scenario file.
fn relative_to(scenario: &Path, data: String) -> String {
    match data.strip_prefix('@') {
        Some(path) if !matches!(path, "" | "-") && Path::new(path).is_relative() => {
            let folder = scenario.parent().unwrap_or_else(|| Path::new(""));
            format!("@{}", folder.join(path).display())
        }
        _ => data,
    }
}
