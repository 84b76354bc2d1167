//! Requests and metadata created from templates for each call.

use bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg_dynamic::ResolvedMethod;
use thalweg_dynamic::metadata::{self, Entry};
use thalweg_dynamic::texts::MessageFormat;

use super::error::SpecError;
use crate::call::CallMetadata;
use crate::requests::MakeMessage;
use crate::template::{Template, TemplateNames, TemplateValues};

/// Start of a placeholder in a template.
pub(super) const PLACE: &str = "{{";

/// Texts with placeholders that are filled for each message.
#[derive(Debug)]
pub(super) struct TextTemplates {
    called: ResolvedMethod,
    format: MessageFormat,
    templates: Vec<Template>,
}

impl TextTemplates {
    /// Parses the templates and tries each once, to report errors before any call is made. Templates with values of
    /// earlier steps cannot be tried in advance.
    pub(super) fn read(
        called: &ResolvedMethod,
        format: MessageFormat,
        texts: &[Vec<u8>],
        names: TemplateNames<'_>,
    ) -> Result<Self, SpecError> {
        let template = |(number, text): (usize, &Vec<u8>)| {
            let text = String::from_utf8_lossy(text);
            Template::parse(&text, names)
                .map_err(|error| SpecError::invalid(format!("request {number}: {error}")))
        };
        let templates = (1..).zip(texts).map(template).collect::<Result<Vec<_>, SpecError>>()?;
        let made = Self { called: called.clone(), format, templates };
        for (number, template) in (1..).zip(&made.templates).filter(|(_, it)| !it.has_variables()) {
            let tried = called.encoded(format, template.fill(&TemplateValues::default()).as_bytes(), false);
            tried.map_err(|why| {
                SpecError::invalid(format!("request {number} is not a valid {}: {why}", called.request_type))
            })?;
        }
        Ok(made)
    }

    /// Returns the texts, if they are the same for all calls.
    pub(super) fn constant(&self) -> Option<Vec<Vec<u8>>> {
        let text = |template: &Template| template.fill(&TemplateValues::default()).into_bytes();
        self.templates.iter().all(Template::is_constant).then(|| self.templates.iter().map(text).collect())
    }
}

impl MakeMessage for TextTemplates {
    fn count(&self) -> usize {
        self.templates.len()
    }

    fn make(&self, index: usize, values: &TemplateValues<'_>) -> Result<Bytes, String> {
        let text = self.templates[index].fill(values);
        Ok(self.called.encoded(self.format, text.as_bytes(), false)?.into())
    }
}

/// Returns the metadata of calls, created for each call if a value has a placeholder.
pub(super) fn call_metadata(
    entries: &[Entry],
    seed: u64,
    names: TemplateNames<'_>,
) -> Result<CallMetadata, SpecError> {
    let is_made = |entry: &Entry| matches!(entry, Entry::Text(_, value) if text_of(value).contains(PLACE));
    if !entries.iter().any(is_made) {
        return Ok(CallMetadata::Constant(metadata::map(entries)));
    }
    let mut parts = Vec::new();
    for entry in entries {
        let template = match entry {
            Entry::Text(key, value) if is_made(entry) => {
                let template = Template::parse(text_of(value), names);
                Some(template.map_err(|error| SpecError::invalid(format!("metadata {key}: {error}")))?)
            }
            _ => None,
        };
        parts.push((entry.clone(), template));
    }
    let is_constant = parts.iter().all(|(_, it)| it.as_ref().is_none_or(Template::is_constant));
    let make = move |values: &TemplateValues<'_>| filled(&parts, &TemplateValues { seed, ..*values });
    let first = make(&TemplateValues::default()).map_err(SpecError::invalid)?;
    Ok(if is_constant { CallMetadata::Constant(first) } else { CallMetadata::Made(Box::new(make)) })
}

fn filled(parts: &[(Entry, Option<Template>)], values: &TemplateValues<'_>) -> Result<MetadataMap, String> {
    let entry = |(entry, template): &(Entry, Option<Template>)| match (entry, template) {
        (Entry::Text(key, _), Some(template)) => {
            let value = template.fill(values).parse();
            let value = value.map_err(|_| format!("metadata {key} is not visible ASCII after expansion"))?;
            Ok(Entry::Text(key.clone(), value))
        }
        (entry, _) => Ok(entry.clone()),
    };
    Ok(metadata::map(&parts.iter().map(entry).collect::<Result<Vec<Entry>, String>>()?))
}

fn text_of(value: &thalweg::metadata::AsciiMetadataValue) -> &str {
    value.to_str().unwrap_or_default()
}
