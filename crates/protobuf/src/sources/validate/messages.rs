//! Checks of messages: JSON names.

use std::collections::HashMap;

use super::files::is_proto3;
use super::found_errors::FoundErrors;
use crate::sources::encode::declarations::json_name;
use crate::sources::features::{number, value};
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::link::{Linker, Scope};
use crate::sources::pool::Pool;

/// `deprecated_legacy_json_field_conflicts` of `MessageOptions`
const JSON_CONFLICTS: i32 = 11;
/// `message_set_wire_format` of `MessageOptions`
pub(super) const MESSAGE_SET: i32 = 1;

pub(super) fn check(linker: &mut Linker, scope: &Scope, message: MessageId, errors: &mut FoundErrors) {
    let declared = &linker.pool[message];
    let option = |number| declared.options.as_deref().is_some_and(|options| options.value.flag(number));
    if is_proto3(&linker.pool, scope.file) {
        if let Some(extension) = declared.extension_ranges.first() {
            errors.push((extension.range.at, "proto3 has no extension ranges".to_owned()));
        }
        if option(MESSAGE_SET) {
            errors.push((declared.name_at, "proto3 has no MessageSet".to_owned()));
        }
    }
    if option(JSON_CONFLICTS) {
        return;
    }
    // Field masks use the default names; JSON accepts both.
    for with_custom in [false, true] {
        let mut warnings = Vec::new();
        check_json_names(&linker.pool, message, with_custom, errors, &mut warnings);
        for (at, message) in warnings {
            linker.pool.warning(scope.file, at, message);
        }
    }
}

fn check_json_names(
    pool: &Pool,
    message: MessageId,
    with_custom: bool,
    errors: &mut FoundErrors,
    warnings: &mut FoundErrors,
) {
    let is_best_effort = pool[message].features.get(number::JSON_FORMAT) == value::LEGACY_BEST_EFFORT;
    let mut names: HashMap<String, (FieldId, bool)> = HashMap::new();
    for &field in &pool[message].fields {
        let declared = &pool[field];
        let default = json_name(&declared.name);
        let custom = declared.json_name.as_deref().filter(|custom| with_custom && **custom != *default);
        let is_custom = custom.is_some();
        let name = custom.map_or(default, str::to_owned);
        if is_custom && name.starts_with('[') && name.ends_with(']') {
            let message = format!("invalid json_name \"{name}\": it cannot be in brackets");
            errors.push((declared.at.name, message));
            continue;
        }
        let Some(&(other, other_is_custom)) = names.get(&name) else {
            names.insert(name, (field, is_custom));
            continue;
        };
        if with_custom && !is_custom && !other_is_custom {
            // Already reported without the custom names.
            continue;
        }
        let kind = |is_custom| if is_custom { "custom" } else { "default" };
        let message = format!(
            "the {} JSON name \"{name}\" of field \"{}\" is also the {} one of field \"{}\"",
            kind(is_custom),
            declared.name,
            kind(other_is_custom),
            pool[other].name
        );
        let is_warning = is_best_effort && !(is_custom && other_is_custom);
        if is_warning { &mut *warnings } else { &mut *errors }.push((declared.at.name, message));
    }
}
