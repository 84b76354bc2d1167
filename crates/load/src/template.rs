//! Text templates filled for each call, such as `{{.RequestNumber}}`, with ghz's names.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::arrivals::Random;
use crate::variables::Variables;

/// Characters of random strings.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Maximum length of random strings.
const LENGTH_MAX: usize = 1 << 20;

/// A text with placeholders that are filled for each call.
///
/// ```
/// use thalweg_load::{Template, TemplateValues};
///
/// let template: Template = r#"{"id": {{.RequestNumber}}, "tag": "{{randomString 4}}"}"#.parse()?;
/// let values = TemplateValues { request: 7, seed: 1, ..TemplateValues::default() };
/// assert!(template.fill(&values).starts_with(r#"{"id": 7, "tag": ""#));
/// # Ok::<(), thalweg_load::TemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    RequestNumber,
    WorkerId,
    MessageNumber,
    Timestamp,
    TimestampUnix,
    TimestampUnixMilli,
    TimestampUnixNano,
    /// UUID of the call.
    Uuid,
    /// New UUID for each placeholder.
    NewUuid,
    RandomInt {
        min: i64,
        max: i64,
    },
    RandomString {
        length: usize,
    },
    /// Value kept by an earlier step.
    Variable(String),
}

/// Context of the call for which a text is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateValues<'a> {
    /// Number of the call, from 0.
    pub request: u64,
    /// Worker that makes the call, from 0.
    pub worker: u64,
    /// Number of the message in its stream, from 0.
    pub message: u64,
    /// Seed of random parts, which are the same for the same call.
    pub seed: u64,
    /// Values kept by earlier steps.
    pub variables: Option<&'a Variables>,
}

/// Names that a template may use as `{{.NAME}}`, besides those of each call.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateNames<'a> {
    /// Values that earlier steps may keep.
    pub variables: &'a [String],
    /// Names and values that are the same for all calls. A variable of the same name takes precedence.
    pub constants: &'a [(&'a str, String)],
}

/// An invalid placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{place}` {why}; available are .RequestNumber, .WorkerID, .MessageNumber, .Timestamp, .TimestampUnix, \
     .TimestampUnixMilli, .TimestampUnixNano, .UUID or newUUID, randomInt MIN MAX, randomString LENGTH; of the method \
     .FullyQualifiedName, .MethodName, .ServiceName, .InputName, .OutputName, .IsClientStreaming, .IsServerStreaming"
)]
pub struct TemplateError {
    place: String,
    why: &'static str,
}

impl std::str::FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Self::parse(text, TemplateNames::default())
    }
}

impl Template {
    /// Parses a template that may also use these names. Constants become part of the text.
    ///
    /// # Errors
    ///
    /// If a placeholder is invalid.
    pub fn parse(text: &str, names: TemplateNames<'_>) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (place, after) = behind.split_once("}}").ok_or_else(|| TemplateError {
                place: format!("{{{{{}", behind.chars().take(20).collect::<String>()),
                why: "has no closing }}",
            })?;
            parts.push(Part::parse(place.trim(), names)?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }
}

impl TemplateNames<'_> {
    fn find(self, name: &str) -> Option<Part> {
        if self.variables.iter().any(|known| known == name) {
            return Some(Part::Variable(name.to_owned()));
        }
        let constant = self.constants.iter().find(|(known, _)| *known == name)?;
        Some(Part::Text(constant.1.clone()))
    }
}

impl Part {
    fn parse(place: &str, names: TemplateNames<'_>) -> Result<Self, TemplateError> {
        let error = |why| TemplateError { place: format!("{{{{{place}}}}}"), why };
        let words: Vec<&str> = place.split_whitespace().collect();
        let number = |word: &str| word.parse::<i64>().map_err(|_| error("needs integers"));
        Ok(match words[..] {
            [".RequestNumber"] => Self::RequestNumber,
            [".WorkerID"] => Self::WorkerId,
            [".MessageNumber"] => Self::MessageNumber,
            [".Timestamp"] => Self::Timestamp,
            [".TimestampUnix"] => Self::TimestampUnix,
            [".TimestampUnixMilli"] => Self::TimestampUnixMilli,
            [".TimestampUnixNano"] => Self::TimestampUnixNano,
            [".UUID"] => Self::Uuid,
            ["newUUID"] => Self::NewUuid,
            ["randomInt", min, max] => {
                let (min, max) = (number(min)?, number(max)?);
                if min > max {
                    return Err(error("has MIN greater than MAX"));
                }
                Self::RandomInt { min, max }
            }
            ["randomString", length] => {
                let length = usize::try_from(number(length)?).ok().filter(|length| *length <= LENGTH_MAX);
                Self::RandomString { length: length.ok_or_else(|| error("needs a LENGTH from 0 to 1 MiB"))? }
            }
            [name] => match name.strip_prefix('.').and_then(|name| names.find(name)) {
                Some(part) => part,
                None => return Err(error("is unknown")),
            },
            _ => return Err(error("is unknown")),
        })
    }
}

impl Template {
    /// Returns whether there is nothing to fill, so that the text is the same for each call.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Returns whether it uses values of earlier steps.
    pub fn has_variables(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Variable(_)))
    }

    /// Returns the text for one call. A missing variable is empty.
    pub fn fill(&self, values: &TemplateValues<'_>) -> String {
        let TemplateValues { request, worker, message, seed, variables } = *values;
        let mut random = Random::of([seed, request, message]);
        let of_call = [random.next(), random.next()];
        // One reading of the clock per text.
        let now = SystemTime::now();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut text = String::new();
        for part in &self.0 {
            // Writing to a String cannot fail.
            let _ = match part {
                Part::Text(part) => text.write_str(part),
                Part::RequestNumber => write!(text, "{request}"),
                Part::WorkerId => write!(text, "{worker}"),
                Part::MessageNumber => write!(text, "{message}"),
                Part::Timestamp => write!(text, "{}", humantime::format_rfc3339_millis(now)),
                Part::TimestampUnix => write!(text, "{}", since.as_secs()),
                Part::TimestampUnixMilli => write!(text, "{}", since.as_millis()),
                Part::TimestampUnixNano => write!(text, "{}", since.as_nanos()),
                Part::Variable(name) => {
                    let value = variables.and_then(|variables| variables.get(name));
                    text.write_str(value.map_or("", String::as_str))
                }
                Part::Uuid => uuid(of_call, &mut text),
                Part::NewUuid => uuid([random.next(), random.next()], &mut text),
                Part::RandomInt { min, max } => {
                    let span = max.abs_diff(*min).saturating_add(1);
                    let drawn = random.next() % span.max(1);
                    write!(text, "{}", min.wrapping_add_unsigned(drawn))
                }
                Part::RandomString { length } => {
                    let letter = |_| char::from(LETTERS[(random.next() % LETTERS.len() as u64) as usize]);
                    text.extend((0..*length).map(letter));
                    Ok(())
                }
            };
        }
        text
    }
}

/// Formats a UUID of version 4 (RFC 9562).
fn uuid([high, low]: [u64; 2], text: &mut String) -> std::fmt::Result {
    let high = high & !0xf000 | 0x4000;
    let low = low & !(3 << 62) | 1 << 63;
    write!(
        text,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, request: u64) -> String {
        let template: Template = text.parse().unwrap_or_else(|error| panic!("{error}"));
        template.fill(&TemplateValues { request, worker: 3, message: 2, seed: 5, variables: None })
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(filled("{{.RequestNumber}}/{{ .WorkerID }}/{{.MessageNumber}}!", 7), "7/3/2!");
        assert_eq!(filled("as it is", 7), "as it is");
        let uuid = filled("{{.UUID}}", 7);
        assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'), "{uuid}");
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
        assert_eq!(uuid, filled("{{.UUID}}", 7), "the same call has the same");
        assert_ne!(uuid, filled("{{.UUID}}", 8));
        assert_eq!(filled("{{randomString 12}}", 7).len(), 12);
        let numbers: Vec<i64> =
            (0..200).map(|request| filled("{{randomInt -2 2}}", request).parse().unwrap()).collect();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&-2), Some(&2)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(filled("{{.TimestampUnix}}", 0).parse::<u64>().unwrap().abs_diff(now) <= 1);
        assert!(filled("{{.Timestamp}}", 0).ends_with('Z'));
        assert!("text".parse::<Template>().unwrap().is_constant());
        assert!(!"{{.UUID}}".parse::<Template>().unwrap().is_constant());
        filled("{{randomInt -9223372036854775808 9223372036854775807}}", 1).parse::<i64>().unwrap();
    }

    #[test]
    fn constants_are_folded_into_text() {
        let constants = [("MethodName", "Get".to_owned()), ("InputName", "Order".to_owned())];
        let check = |text: &str, variables: &[&str], expected: &str, is_constant: bool| {
            let variables: Vec<String> = variables.iter().map(|name| (*name).to_owned()).collect();
            let names = TemplateNames { variables: &variables, constants: &constants };
            let template = Template::parse(text, names).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(template.fill(&TemplateValues::default()), expected, "{text}");
            assert_eq!(template.is_constant(), is_constant, "{text}");
        };
        check("a {{.MethodName}}{{ .InputName }}", &[], "a GetOrder", true);
        check("{{.MethodName}} {{.RequestNumber}}", &[], "Get 0", false);
        // A variable that a step may keep, but has not.
        check("{{.MethodName}} {{.InputName}}", &["MethodName"], " Order", false);
        assert!(
            Template::parse(
                "{{.OutputName}}",
                TemplateNames { constants: &constants, ..TemplateNames::default() }
            )
            .is_err()
        );
    }

    #[test]
    fn uuid_is_per_call_and_new_uuid_per_placeholder() {
        let text = filled("{{.UUID}} {{newUUID}} {{randomInt 0 9}} {{.UUID}} {{newUUID}}", 7);
        let [uuid, new, _, again, newer] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!(uuid, again);
        assert_ne!(uuid, new);
        assert_ne!(new, newer);
    }

    /// Regression test: the second half of one call's UUIDs was the first half of the next one's.
    #[test]
    fn random_values_of_consecutive_calls_differ() {
        let of_call = |request| {
            [filled("{{.UUID}}", request), filled("{{newUUID}}", request)].concat().replace('-', "")
        };
        let words = |text: &str| (0..=text.len() - 10).map(|at| text[at..at + 10].to_owned()).collect();
        let calls: Vec<std::collections::BTreeSet<String>> =
            (0..20).map(|request| words(&of_call(request))).collect();
        for (one, other) in calls.iter().zip(&calls[1..]) {
            assert_eq!(one.intersection(other).next(), None);
        }
    }

    #[test]
    fn invalid_placeholder_is_rejected() {
        for (text, expected) in [
            ("{{.Nothing}}", "`{{.Nothing}}` is unknown"),
            ("{{.UUID", "`{{.UUID` has no closing }}"),
            ("{{randomInt 1}}", "is unknown"),
            ("{{randomInt 2 1}}", "has MIN greater than MAX"),
            ("{{randomInt a b}}", "needs integers"),
            ("{{randomString -1}}", "needs a LENGTH from 0 to 1 MiB"),
        ] {
            let error = text.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
