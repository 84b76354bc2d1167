//! Fields of a service config that have no meaning: [`UnknownField`].

use serde_json::Value;

use super::config::ServiceConfig;
use super::error::ServiceConfigError;
use super::field::Field;
use super::json::parse_json;
use super::known::KnownNames;
use super::policy::PolicyRegistry;
use super::similar::most_similar;

/// A field of a service config that is ignored, because its name is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "service config, {field}: unknown field, ignored{}",
    .similar.as_ref().map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default()
)]
#[non_exhaustive]
pub struct UnknownField {
    /// Path of the field, such as `methodConfig[0].timout`.
    pub field: String,
    /// The known name that is most similar, if one is.
    pub similar: Option<String>,
}

impl ServiceConfig {
    /// Returns the fields with unknown names, for warnings: [`parse`](Self::parse) ignores them, as gRPC requires.
    ///
    /// Settings of policies that are not selected, and those of the application's own ones, are not checked.
    ///
    /// ```
    /// use thalweg_balance::service_config::{PolicyRegistry, ServiceConfig};
    ///
    /// let json = r#"{ "methodConfig": [{ "name": [{}], "timout": "2s" }] }"#;
    /// let unknown = ServiceConfig::unknown_fields(json, &PolicyRegistry::default())?;
    /// let expected = "service config, methodConfig[0].timout: unknown field, ignored; did you mean `timeout`?";
    /// assert_eq!(unknown[0].to_string(), expected);
    /// # Ok::<(), thalweg_balance::service_config::ServiceConfigError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the config is invalid.
    pub fn unknown_fields(
        json: &str,
        policies: &PolicyRegistry,
    ) -> Result<Vec<UnknownField>, ServiceConfigError> {
        let (value, known) = (parse_json(json)?, KnownNames::default());
        let root = Field::root(&value).noting(&known);
        Self::read(&root, policies)?;
        let mut unknown = Vec::new();
        find(&root, &known, &mut unknown);
        Ok(unknown)
    }
}

fn find(field: &Field<'_>, known: &KnownNames, unknown: &mut Vec<UnknownField>) {
    match field.value() {
        Value::Object(members) => {
            let Some(names) = known.of(field.value()) else { return };
            for (name, value) in members {
                let member = field.member(name, value);
                if names.contains(name) {
                    find(&member, known, unknown);
                } else {
                    let similar = most_similar(name, names.iter().map(String::as_str)).map(str::to_owned);
                    unknown.push(UnknownField { field: member.to_string(), similar });
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                find(&field.item(at, item), known, unknown);
            }
        }
        _ => {}
    }
}
