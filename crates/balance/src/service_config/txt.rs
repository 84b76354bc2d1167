//! Service configs in DNS TXT records (gRFC A2).

use super::config::ServiceConfig;
use super::error::ServiceConfigError;
use super::field::{Field, Read};
use super::json::parse_json;

/// Attribute of the TXT record, which belongs to the name `_grpc_config.` and the server's.
const ATTRIBUTE: &str = "grpc_config=";

/// Language of this client in `clientLanguage`. gRPC reserves no name for Rust.
const LANGUAGE: &str = "rust";

/// Fields of a choice. Others make the record invalid, since they may be criteria.
const FIELDS: [&str; 4] = ["clientLanguage", "percentage", "clientHostname", "serviceConfig"];

/// The client, as the criteria of a choice see it.
#[derive(Clone, Copy, Debug)]
pub struct TxtClient<'a> {
    /// Name of the client's host. It is compared verbatim.
    pub host_name: &'a str,
    /// Random number from 0 to 99. A choice with a percentage applies if its percentage is greater.
    pub random_percent: u32,
}

impl ServiceConfig {
    /// Reads the strings of a TXT record, joined, and returns the JSON of the first choice for this client.
    ///
    /// Returns `None` if no choice applies, or if the record does not start with `grpc_config=`. The language of this
    /// client is `rust`. The config itself, and choices after it, are not validated.
    ///
    /// # Errors
    /// Fails if the list or the criteria up to the choice are invalid, or if its service config is no object. A
    /// criterion that is unknown is invalid (gRFC A2).
    pub fn json_from_txt(record: &str, client: TxtClient<'_>) -> Result<Option<String>, ServiceConfigError> {
        let Some(json) = record.strip_prefix(ATTRIBUTE) else { return Ok(None) };
        let mut chosen = None;
        Field::root(&parse_json(json)?).items(|choice| {
            if chosen.is_none() && applies(choice, client)? {
                chosen = Some(choice.required("serviceConfig", |config| {
                    config.object().map(|_| config.value().to_string())
                })?);
            }
            Ok(())
        })?;
        Ok(chosen)
    }
}

/// Returns whether all criteria of a choice apply to the client.
fn applies(choice: &Field<'_>, client: TxtClient<'_>) -> Read<bool> {
    if let Some(unknown) = choice.object()?.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(choice.wrong_for(format!("one of {}", FIELDS.join(", ")), unknown));
    }
    let names = |list| Ok(choice.optional(list, |list| list.items(Field::string))?.unwrap_or_default());
    let (languages, host_names) = (names("clientLanguage")?, names("clientHostname")?);
    let percentage = choice.optional("percentage", |percentage| percentage.integer(0..=100))?;
    Ok((languages.is_empty() || languages.iter().any(|language| language.eq_ignore_ascii_case(LANGUAGE)))
        && (host_names.is_empty() || host_names.iter().any(|name| name == client.host_name))
        && percentage.is_none_or(|percentage| client.random_percent < percentage))
}
