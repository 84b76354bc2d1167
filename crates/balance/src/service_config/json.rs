//! JSON texts as values: [`parse_json`].

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::ServiceConfigError;

/// Parses a JSON text.
///
/// A name that occurs twice in an object is an error, as in gRPC C++ and Java: it is not clear which one is meant.
pub(super) fn parse_json(text: &str) -> Result<Value, ServiceConfigError> {
    let value: Unambiguous =
        serde_json::from_str(text).map_err(|error| ServiceConfigError::Syntax(error.to_string()))?;
    Ok(value.0)
}

/// A value whose objects have each name once.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // JSON has finite numbers only.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            let Unambiguous(value) = members.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_serde_json() {
        let text =
            r#"{"a": [null, true, 0, -1, 18446744073709551616, 1.5, 1e-320, "\u00fc"], "b": {}, "c": []}"#;
        assert_eq!(parse_json(text), Ok(serde_json::from_str(text).unwrap()));
        assert!(parse_json("1e999").is_err());
    }

    #[test]
    fn duplicate_fields_are_errors_with_their_position() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse_json(text), Err(ServiceConfigError::Syntax(expected.to_owned())), "{text}");
        };
        check("{\"a\": 1,\n \"a\": 2}", "duplicate field `a` at line 2 column 4");
        check(r#"[{"b": {"c": 1, "c": 1}}]"#, "duplicate field `c` at line 1 column 19");
        assert!(parse_json(r#"{"a": {"b": 1}, "b": 2}"#).is_ok());
    }
}
