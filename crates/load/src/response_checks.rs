//! Conditions on responses: `status == NOT_FOUND`, `items.length > 0`, `user.name == "Ada"`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;
use thalweg::Code;
use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintOptions};

use crate::{Check, Expected, Variables};

/// A condition on the status or on a field of a response.
///
/// ```
/// let check: thalweg_load::ResponseCheck = "items.length > 0".parse()?;
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseCheck {
    text: String,
    on: On,
}

#[derive(Clone, Debug, PartialEq)]
enum On {
    Status(Code),
    Field { path: FieldPath, relation: Relation },
}

#[derive(Clone, Debug, PartialEq)]
enum Relation {
    Exists,
    Compared(Comparison, Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
}

/// Longer operators first.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::More),
    (" contains ", Comparison::Contains),
];

/// A field of a response: `user.addresses[0].city`, `items.length`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(String),
    Index(usize),
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!("invalid path `{text}`; expected a field of the response, such as user.addresses[0].city")
        };
        let mut parts = Vec::new();
        for word in text.trim().split('.') {
            let (name, indices) = word.split_once('[').map_or((word, ""), |(name, rest)| (name, rest));
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_name) {
                return Err(error());
            }
            parts.push(Part::Field(name.to_owned()));
            for index in indices.split_terminator('[') {
                let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
                parts.push(Part::Index(index.ok_or_else(error)?));
            }
        }
        Ok(Self { text: text.trim().to_owned(), parts })
    }
}

impl FieldPath {
    /// Returns the value at this path. Fields match by either of their names; `length` is that of a list, map or
    /// string.
    fn find(&self, response: &Value) -> Option<Value> {
        let mut within = response;
        for (place, part) in self.parts.iter().enumerate() {
            within = match part {
                Part::Index(index) => within.get(index)?,
                Part::Field(name) => match member(within, name) {
                    Some(member) => member,
                    None if name == "length" && place + 1 == self.parts.len() => return length(within),
                    None => return None,
                },
            };
        }
        Some(within.clone())
    }
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let members = value.as_object()?;
    members.get(name).or_else(|| {
        // Responses use JSON names: `order_id` is `orderId`.
        let wanted = name.replace('_', "").to_ascii_lowercase();
        members.iter().find(|(key, _)| key.replace('_', "").to_ascii_lowercase() == wanted).map(|(_, it)| it)
    })
}

fn length(value: &Value) -> Option<Value> {
    match value {
        Value::Array(items) => Some(items.len().into()),
        Value::Object(members) => Some(members.len().into()),
        Value::String(text) => Some(text.chars().count().into()),
        _ => None,
    }
}

impl FromStr for ResponseCheck {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let integer = |on| Ok(Self { text: text.to_owned(), on });
        if let Some(path) = text.strip_suffix(" exists") {
            return integer(On::Field { path: path.parse()?, relation: Relation::Exists });
        }
        // The first operator in the text, and the longest at that position.
        let found = COMPARISONS.iter().enumerate().filter_map(|(rank, (sign, comparison))| {
            text.find(sign).map(|at| (at, rank, *sign, *comparison))
        });
        let Some((at, _, sign, comparison)) = found.min_by_key(|(at, rank, ..)| (*at, *rank)) else {
            return Err(format!(
                "invalid check `{text}`; expected status == NOT_FOUND, items.length > 0, \
                 user.name == \"Ada\", user.tags contains \"new\", user.email exists"
            ));
        };
        let (left, right) = (text[..at].trim(), text[at + sign.len()..].trim());
        if left == "status" {
            if comparison != Comparison::Equal {
                return Err(format!("invalid operator in `{text}`; use == with status"));
            }
            return integer(On::Status(code(right)?));
        }
        if right.is_empty() {
            return Err(format!("missing value after the operator in `{text}`"));
        }
        // A word without quotes is a string.
        let value = serde_json::from_str(right).unwrap_or_else(|_| Value::String(right.to_owned()));
        integer(On::Field { path: left.parse()?, relation: Relation::Compared(comparison, value) })
    }
}

fn code(name: &str) -> Result<Code, String> {
    let name = name.trim_matches('"');
    let named = |number: &i32| thalweg_measure::code::code_name(*number) == name;
    let number = name.parse().ok().filter(|number| (0..=16).contains(number));
    let number = number.or_else(|| (0..=16).find(named));
    number
        .map(Code::from_i32)
        .ok_or_else(|| format!("invalid status `{name}`; use OK, NOT_FOUND … or a number from 0 to 16"))
}

impl Relation {
    fn holds(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Self::Exists, found) => found.is_some_and(|found| !found.is_null()),
            (Self::Compared(Comparison::Unequal, value), None) => !value.is_null(),
            (Self::Compared(..), None) => false,
            (Self::Compared(comparison, value), Some(found)) => comparison.holds(found, value),
        }
    }
}

impl Comparison {
    fn holds(self, found: &Value, value: &Value) -> bool {
        if self == Self::Contains {
            return match found {
                Value::Array(items) => items.iter().any(|item| Self::Equal.holds(item, value)),
                Value::Object(members) => value.as_str().is_some_and(|key| members.contains_key(key)),
                Value::String(text) => value.as_str().is_some_and(|part| text.contains(part)),
                _ => false,
            };
        }
        let is_same = matches!(self, Self::Equal | Self::Unequal);
        let order = match (found, value) {
            // `007` and `7` differ as strings.
            (Value::String(found), Value::String(value)) if is_same => Some(found.cmp(value)),
            // ProtoJSON prints 64-bit numbers as strings.
            _ => match (Number::of(found), Number::of(value)) {
                (Some(found), Some(value)) => found.compared_with(value),
                _ => match (found, value) {
                    (Value::String(found), Value::String(value)) => Some(found.cmp(value)),
                    _ if self == Self::Equal => return found == value,
                    _ if self == Self::Unequal => return found != value,
                    _ => None,
                },
            },
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Contains => false,
        })
    }
}

/// A number of a response or condition. Integers stay exact, since an f64 has only 53 bits for them.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                number.as_i128().map(Self::Integer).or_else(|| number.as_f64().map(Self::Float))
            }
            Value::String(text) => {
                text.parse().map(Self::Integer).or_else(|_| text.parse().map(Self::Float)).ok()
            }
            _ => None,
        }
    }

    /// Returns `None` for NaN.
    fn compared_with(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(&other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other),
            (Self::Integer(integer), Self::Float(float)) => compare_integer_with_float(integer, float),
            (Self::Float(float), Self::Integer(integer)) => {
                compare_integer_with_float(integer, float).map(Ordering::reverse)
            }
        }
    }
}

/// Rounding keeps the order. If both are equal after it, the real number is an integer too.
fn compare_integer_with_float(integer: i128, float: f64) -> Option<Ordering> {
    Some((integer as f64).partial_cmp(&float)?.then_with(|| integer.cmp(&(float as i128))))
}

/// Returns the conditions on a call with this response type, and the fields it keeps by name for later steps.
///
/// # Errors
///
/// If a call that is expected to fail has conditions on its response.
pub fn expected(
    conditions: &[ResponseCheck],
    kept: Vec<(String, FieldPath)>,
    schema: &Schema,
    response_type: &str,
) -> Result<Expected, String> {
    let mut expected = Expected::default();
    let mut on_fields = Vec::new();
    for condition in conditions {
        match &condition.on {
            On::Status(code) => expected.status = *code,
            On::Field { path, relation } => {
                on_fields.push((condition.text.clone(), path.clone(), relation.clone()));
            }
        }
    }
    if expected.status != Code::Ok && !(on_fields.is_empty() && kept.is_empty()) {
        return Err("a call that is expected to fail has no response to check".to_owned());
    }
    if !(on_fields.is_empty() && kept.is_empty()) {
        let (schema, message) = (schema.clone(), response_type.to_owned());
        expected.responses = Some(Arc::new(Checks { schema, message, conditions: on_fields, kept }));
    }
    Ok(expected)
}

/// Decodes responses and checks the conditions.
struct Checks {
    schema: Schema,
    message: String,
    conditions: Vec<(String, FieldPath, Relation)>,
    kept: Vec<(String, FieldPath)>,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks")
            .field("conditions", &self.conditions)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

impl Check for Checks {
    fn check(&self, response: &[u8], variables: &mut Variables) -> Result<(), String> {
        let message = self.schema.message(&self.message).ok_or("the schema lacks the response type")?;
        let options = PrintOptions::default().defaults(true).allow_partial(true);
        let mut text = Vec::new();
        json::print(message, response, &options, &mut text)
            .map_err(|error| format!("the response is not a valid {}: {error}", self.message))?;
        let response: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        for (text, path, relation) in &self.conditions {
            let found = path.find(&response);
            if !relation.holds(found.as_ref()) {
                let found = found.map_or_else(|| "missing".to_owned(), |found| shortened(&found));
                return Err(format!("{text}: {} is {found}", path.text));
            }
        }
        for (name, path) in &self.kept {
            let found = path
                .find(&response)
                .ok_or_else(|| format!("failed to keep `{name}`: the response has no {}", path.text))?;
            // The JSON form, but without the quotes of a string: templates have their own.
            let text = found.to_string();
            let text = match found {
                Value::String(_) => text[1..text.len() - 1].to_owned(),
                _ => text,
            };
            variables.insert(name.clone(), text);
        }
        Ok(())
    }
}

fn shortened(value: &Value) -> String {
    const LENGTH_MAX: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LENGTH_MAX {
        return text;
    }
    text.chars().take(LENGTH_MAX).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, response: &str) -> bool {
        let condition: ResponseCheck = condition.parse().unwrap_or_else(|error| panic!("{error}"));
        let On::Field { path, relation } = condition.on else { panic!("no field") };
        relation.holds(path.find(&serde_json::from_str(response).unwrap()).as_ref())
    }

    #[test]
    fn response_checks_evaluate_fields() {
        let response = r#"{"orderId": "70", "price": 2.5, "items": [{"name": "a <b"}, {"name": "c"}], "paid": true,
                         "labels": {"x": "1"}, "tags": ["new", "hot"], "none": null}"#;
        for condition in [
            "order_id == 70",
            "orderId > 9",
            "price<=2.5",
            "items.length == 2",
            "items[0].name == \"a <b\"",
            "items[1].name == c",
            "items[1].name >= b",
            "paid == true",
            "paid != false",
            "labels.x == 1",
            "labels contains \"x\"",
            "tags contains hot",
            "items[0].name contains <",
            "price exists",
            "missing != 3",
        ] {
            assert!(holds(condition, response), "{condition}");
        }
        for condition in [
            "order_id == 71",
            "items[2].name == c",
            "missing == 3",
            "none exists",
            "missing exists",
            "paid < 3",
            "tags contains cold",
            "price contains 2",
        ] {
            assert!(!holds(condition, response), "{condition}");
        }
    }

    #[test]
    fn integers_are_compared_exactly() {
        let response = r#"{"id": "9007199254740993", "number": 9007199254740993, "most": "18446744073709551615",
                         "least": "-9223372036854775808", "real": 9007199254740992.0, "half": 0.5,
                         "ids": ["9007199254740993"], "nan": "NaN", "far": "Infinity", "code": "007"}"#;
        for condition in [
            "id == 9007199254740993",
            "id != 9007199254740992",
            "id > 9007199254740992",
            "id == \"9007199254740993\"",
            "number == 9007199254740993",
            "number != 9007199254740992",
            "number > 9007199254740992.0",
            "most == 18446744073709551615",
            "most > 18446744073709551614",
            "least == -9223372036854775808",
            "least < -9223372036854775807",
            "real == 9007199254740992",
            "real < 9007199254740993",
            "half < 1",
            "half > 0",
            "ids contains 9007199254740993",
            "nan == NaN",
            "far > 9007199254740993",
            "code == 007",
            "code != \"7\"",
            "code < 8",
        ] {
            assert!(holds(condition, response), "{condition}");
        }
        for condition in [
            "id == 9007199254740992",
            "number <= 9007199254740992",
            "ids contains 9007199254740992",
            "nan < 1",
        ] {
            assert!(!holds(condition, response), "{condition}");
        }
    }

    #[test]
    fn status_is_parsed_by_name_and_number() {
        for text in ["status == NOT_FOUND", "status==5", "status == \"NOT_FOUND\""] {
            assert_eq!(text.parse::<ResponseCheck>().unwrap().on, On::Status(Code::NotFound));
        }
    }

    #[test]
    fn invalid_response_check_is_rejected() {
        for (text, expected) in [
            ("fine", "invalid check `fine`"),
            ("status > OK", "use == with status"),
            ("status == SO_SO", "invalid status `SO_SO`"),
            ("a..b == 1", "invalid path `a..b`"),
            ("a[x] == 1", "invalid path"),
            ("a ==", "missing value after the operator"),
        ] {
            let error = text.parse::<ResponseCheck>().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
