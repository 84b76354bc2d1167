//! gRPC's [service config]: settings, in JSON, from a service's operators for its clients.
//!
//! Unknown fields are ignored, as the format requires. Known fields must be valid.
//!
//! [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md

use std::fmt;

use serde_json::Value;

/// The supported part of a service config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceConfig {
    pub(crate) connection_scaling: Option<ConnectionScaling>,
}

/// Connection scaling (gRFC A105).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionScaling {
    pub(crate) max_connections_per_subchannel: Option<u32>,
}

/// An invalid service config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceConfigError {
    /// The text is not JSON.
    #[error("invalid JSON in the service config: {0}")]
    Syntax(String),
    /// A field has an invalid type or value.
    #[error("invalid service config: {field}: expected {expected}, found {found}")]
    Field {
        /// Path of the field, such as `connectionScaling.maxConnectionsPerSubchannel`.
        field: String,
        /// The expected value.
        expected: &'static str,
        /// The value found, shortened.
        found: String,
    },
}

impl ServiceConfig {
    pub(crate) fn parse(json: &str) -> Result<Self, ServiceConfigError> {
        let value: Value =
            serde_json::from_str(json).map_err(|error| ServiceConfigError::Syntax(error.to_string()))?;
        let root = Field { value: &value, parent: None, name: "the whole" };
        let connection_scaling =
            root.member("connectionScaling")?.map(|field| ConnectionScaling::read(&field));
        Ok(Self { connection_scaling: connection_scaling.transpose()? })
    }
}

impl ConnectionScaling {
    fn read(field: &Field<'_>) -> Result<Self, ServiceConfigError> {
        let max_connections = field.member("maxConnectionsPerSubchannel")?.map(|field| field.positive());
        Ok(Self { max_connections_per_subchannel: max_connections.transpose()? })
    }
}

/// A value and its path.
struct Field<'a> {
    value: &'a Value,
    parent: Option<&'a Field<'a>>,
    name: &'a str,
}

/// Maximum characters of an invalid value that are shown.
const FOUND_LEN_MAX: usize = 40;

impl<'a> Field<'a> {
    /// Returns a field of an object; `None` if it is missing or null, which are equivalent (ProtoJSON).
    fn member(&'a self, name: &'a str) -> Result<Option<Field<'a>>, ServiceConfigError> {
        let Value::Object(fields) = self.value else { return Err(self.wrong("an object")) };
        let value = fields.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| Field { value, parent: Some(self), name }))
    }

    /// Returns a positive 32-bit number. ProtoJSON also allows strings, and floats without a fraction.
    fn positive(&self) -> Result<u32, ServiceConfigError> {
        let number = match self.value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.filter(|&number| number > 0).ok_or_else(|| self.wrong("a whole number from 1 to 4294967295"))
    }

    fn wrong(&self, expected: &'static str) -> ServiceConfigError {
        let text = self.value.to_string();
        let mut found: String = text.chars().take(FOUND_LEN_MAX).collect();
        if found.len() < text.len() {
            found.push('…');
        }
        ServiceConfigError::Field { field: self.to_string(), expected, found }
    }
}

/// Converts a float without a fraction to an integer.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u64)
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            Some(parent) if parent.parent.is_some() => write!(f, "{parent}.{}", self.name),
            _ => f.write_str(self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_fields_are_parsed() {
        let check = |json: &str, expected: Option<u32>| {
            let config = ServiceConfig::parse(json).unwrap();
            let number = config.connection_scaling.and_then(|scaling| scaling.max_connections_per_subchannel);
            assert_eq!(number, expected, "{json}");
        };
        check(r#"{"connectionScaling": {"maxConnectionsPerSubchannel": 7}}"#, Some(7));
        check(r#"{"connectionScaling": {"maxConnectionsPerSubchannel": "7"}}"#, Some(7));
        check(r#"{"connectionScaling": {"maxConnectionsPerSubchannel": 7.0}}"#, Some(7));
        check(r#"{"connectionScaling": {"maxConnectionsPerSubchannel": 4294967295}}"#, Some(u32::MAX));
        check(r#"{"connectionScaling": {"maxConnectionsPerSubchannel": null, "else": []}}"#, None);
        check(r#"{"connectionScaling": {}}"#, None);
        check(r#"{"connectionScaling": null}"#, None);
        check(r#"{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": 5}"#, None);
        check("{}", None);
    }

    #[test]
    fn errors_name_the_field() {
        let check = |json: &str, expected: &str| {
            assert_eq!(ServiceConfig::parse(json).unwrap_err().to_string(), expected, "{json}");
        };
        let number =
            |value: &str| format!(r#"{{"connectionScaling": {{"maxConnectionsPerSubchannel": {value}}}}}"#);
        for value in ["0", "-1", "1.5", "4294967296", r#""many""#, "true", "[]", "1e300"] {
            let found: Value = serde_json::from_str(value).unwrap();
            check(
                &number(value),
                &format!(
                    "invalid service config: connectionScaling.maxConnectionsPerSubchannel: expected a whole \
                     number from 1 to 4294967295, found {found}"
                ),
            );
        }
        check(
            r#"{"connectionScaling": 3}"#,
            "invalid service config: connectionScaling: expected an object, found 3",
        );
        check("[]", "invalid service config: the whole: expected an object, found []");
        let long = ServiceConfig::parse(&format!(r#""{}""#, "ü".repeat(100))).unwrap_err().to_string();
        assert!(long.ends_with("üü…"), "{long}");
        let syntax = ServiceConfig::parse("{").unwrap_err().to_string();
        assert!(
            syntax.starts_with("invalid JSON in the service config: ") && syntax.contains("line 1"),
            "{syntax}"
        );
    }
}
