//! Scenario files: flows of several steps in TOML.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ValueEnum;
use serde::Deserialize;
use thalweg_dynamic::MethodNameError;

use super::asked_stream::AskedStream;
use super::data::Input;
use super::deadline::Deadline;
use super::steps::{AskedFlow, AskedStep, parse_think};
use crate::compression::Compression;
use crate::failure::Failure;
use crate::message_format::BYTE_ORDER_MARK;
use crate::metadata;

/// What a file has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOfFlows {
    name: Option<String>,
    flow: Vec<FlowOfFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowOfFile {
    name: Option<String>,
    #[serde(default = "one")]
    weight: u32,
    step: Vec<StepOfFile>,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepOfFile {
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

/// What steps have that do not say otherwise.
pub(super) struct Defaults<'a> {
    pub(super) deadline: Deadline,
    pub(super) metadata: &'a [metadata::Entry],
    pub(super) compress: Option<Compression>,
    pub(super) max_message_bytes: usize,
    pub(super) has_templates: bool,
}

/// The scenario's name, and its flows.
pub(super) fn read(path: &Path, defaults: &Defaults<'_>) -> Result<(String, Vec<AskedFlow>), Failure> {
    let failed = |why: String| Failure::bad_arguments(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let file: FileOfFlows = toml::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
        .map_err(|error| failed(format!("invalid scenario: {}", error.to_string().trim())))?;
    let named = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = file.name.or(named).unwrap_or_else(|| "scenario".to_owned());
    let mut flows = Vec::new();
    for (number, flow) in (1..).zip(file.flow) {
        let name = flow.name.unwrap_or_else(|| format!("flow {number}"));
        let mut steps: Vec<AskedStep> = Vec::new();
        for (number, step) in (1..).zip(flow.step) {
            let step = step
                .asked(path, defaults)
                .map_err(|why| failed(format!("step {number} of {name}: {why}")))?;
            if steps.iter().any(|other| other.name == step.name) {
                return Err(failed(format!(
                    "{name} has two steps `{}`: give them names of their own",
                    step.name
                )));
            }
            steps.push(step);
        }
        if steps.is_empty() {
            return Err(failed(format!("{name} has no step")));
        }
        if flows.iter().any(|other: &AskedFlow| other.name == name) {
            return Err(failed(format!("there are two flows `{name}`")));
        }
        flows.push(AskedFlow { name, weight: flow.weight, steps });
    }
    if flows.iter().all(|flow| flow.weight == 0) {
        return Err(failed("no flow has a weight above 0".to_owned()));
    }
    Ok((name, flows))
}

impl StepOfFile {
    fn asked(self, file: &Path, defaults: &Defaults<'_>) -> Result<AskedStep, String> {
        let time = |name: &str, text: Option<String>| {
            let parse = |text: String| {
                humantime::parse_duration(&text)
                    .map_err(|_| format!("{name}: `{text}` is not a time, such as 1s"))
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
                    return Err(format!("keep: `{name}` is not a name: letters, digits and _"));
                }
                Ok((name.clone(), place.parse().map_err(|why| format!("keep: {why}"))?))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let message_rate = self.message_rate.map(|text| text.parse()).transpose();
        Ok(AskedStep {
            benchmark: None,
            name: self.name.unwrap_or_else(|| self.call.clone()),
            method: self.call.parse().map_err(|error: MethodNameError| error.to_string())?,
            data: self.data.map(|data| beside(file, data)).into_iter().collect(),
            input: self.input.as_deref().map(input).transpose()?,
            order: self.order.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            has_templates: defaults.has_templates,
            metadata: entries,
            deadline: match time("timeout", self.timeout)? {
                None => defaults.deadline,
                timeout => timeout.into(),
            },
            compress: match self.compress {
                Some(name) => Some(Compression::from_str(&name, true)?),
                None => defaults.compress,
            },
            max_message_bytes: defaults.max_message_bytes,
            stream: AskedStream {
                messages: self.messages,
                message_rate: message_rate.map_err(|error| format!("message_rate: {error}"))?,
                lasts: time("stream_for", self.stream_for)?,
                responses: self.responses,
                outstanding: self.outstanding,
                lasts_to_end: false,
            },
            checks: self.check.iter().map(|text| text.parse()).collect::<Result<_, String>>()?,
            keep,
            think: self.think.as_deref().map(parse_think).transpose()?,
        })
    }
}

fn input(name: &str) -> Result<Input, String> {
    Input::from_str(name, false)
        .map_err(|_| format!("input: unknown format `{name}`; use json, csv, text, binary or delimited"))
}

/// A file of a scenario is looked for beside it.
fn beside(scenario: &Path, data: String) -> String {
    match data.strip_prefix('@') {
        Some(path) if !matches!(path, "" | "-") && Path::new(path).is_relative() => {
            let folder = scenario.parent().unwrap_or_else(|| Path::new(""));
            format!("@{}", folder.join(path).display())
        }
        _ => data,
    }
}
