//! Checks for options and features that the edition does not have, or that do not apply to the declaration.

use super::found_errors::FoundErrors;
use crate::sources::edition::Edition;
use crate::sources::ids::{FieldId, FileId};
use crate::sources::option_value::{OptionField, OptionMessage, OptionValue};
use crate::sources::owner::Owner;
use crate::sources::pool::{EnumValue, Options, Pool, TypeRef};

/// Field numbers of `FieldOptions`.
mod option {
    pub(super) const TARGETS: i32 = 19;
    pub(super) const FEATURE_SUPPORT: i32 = 22;
    /// Number of `feature_support` in `EnumValueOptions`.
    pub(super) const VALUE_FEATURE_SUPPORT: i32 = 4;
}

/// Field numbers of `FieldOptions.FeatureSupport`.
mod support {
    pub(super) const INTRODUCED: i32 = 1;
    pub(super) const DEPRECATED: i32 = 2;
    pub(super) const DEPRECATION_WARNING: i32 = 3;
    pub(super) const REMOVED: i32 = 4;
    pub(super) const REMOVAL_ERROR: i32 = 5;
}

/// Checks that options and their values exist in the file's edition.
pub(super) fn check(pool: &Pool, file: FileId, owner: Owner, errors: &mut FoundErrors) {
    if let Owner::Field(field) = owner {
        let support = option_message(&pool[field].options, option::FEATURE_SUPPORT);
        check_support(support, &pool[field].name, pool[field].at.name, errors);
    }
    let Some(options) = owner.options(pool).as_deref() else { return };
    let mut messages = Vec::new();
    let edition = pool[file].edition;
    walk(&options.value, &mut |field, values| {
        let support = option_message(&pool[field].options, option::FEATURE_SUPPORT);
        messages.extend(
            out_of_edition(support, edition).map(|why| format!("{} {why}", pool.field_full_name(field))),
        );
        let TypeRef::Enum(declared) = pool[field].type_ref else { return };
        for value in &values.values {
            let OptionValue::Varint(number) = value else { continue };
            let value = pool[declared].values.iter().find(|value| value.number == *number as i32);
            let Some(value) = value else { continue };
            let support = option_message(&value.options, option::VALUE_FEATURE_SUPPORT);
            messages.extend(out_of_edition(support, edition).map(|why| format!("{} {why}", value.name)));
        }
    });
    let at = owner.name_at(pool);
    errors.extend(messages.into_iter().map(|message| (at, message)));
}

/// Checks that options apply to this kind of declaration.
pub(super) fn targets(pool: &Pool, owner: Owner, errors: &mut FoundErrors) {
    let Some(options) = owner.options(pool).as_deref() else { return };
    let (target, name) = owner.target();
    let mut messages = Vec::new();
    walk(&options.value, &mut |field, _| {
        let Some(options) = pool[field].options.as_deref() else { return };
        let mut allowed = options.value.varints(option::TARGETS).peekable();
        if allowed.peek().is_some() && !allowed.any(|allowed| allowed == target) {
            messages.push(format!("option \"{}\" cannot be used on a {name}", pool.field_full_name(field)));
        }
    });
    let at = owner.name_at(pool);
    errors.extend(messages.into_iter().map(|message| (at, message)));
}

/// Visits all fields that are set. The recursion is bounded by the nesting limit of options.
fn walk(message: &OptionMessage, visit: &mut impl FnMut(FieldId, &OptionField)) {
    for field in message.fields.values() {
        visit(field.field, field);
        for value in &field.values {
            if let OptionValue::Message(message) = value {
                walk(message, visit);
            }
        }
    }
}

fn option_message(options: &Options, number: i32) -> Option<&OptionMessage> {
    options.as_deref()?.value.message(number)
}

fn out_of_edition(support: Option<&OptionMessage>, edition: Edition) -> Option<String> {
    let support = support?;
    let number = |field: i32| support.varint(field).map(|number| Edition(number as i32));
    if let Some(introduced) = number(support::INTRODUCED).filter(|&introduced| edition < introduced) {
        return Some(format!("needs edition {}, and this is {}", introduced.name(), edition.name()));
    }
    let removed = number(support::REMOVED).filter(|&removed| edition >= removed)?;
    let why = support.text(support::REMOVAL_ERROR).map_or(String::new(), |why| format!(": {why}"));
    Some(format!("was removed in edition {}{why}", removed.name()))
}

/// Checks that the lifetime a field declares for itself is consistent.
fn check_support(
    support: Option<&OptionMessage>,
    name: &str,
    at: crate::sources::error::Position,
    errors: &mut FoundErrors,
) {
    let Some(support) = support else { return };
    let number = |field: i32| support.varint(field);
    let introduced = number(support::INTRODUCED).unwrap_or(0);
    let (deprecated, removed) = (number(support::DEPRECATED), number(support::REMOVED));
    let has_warning = support.value(support::DEPRECATION_WARNING).is_some();
    let has_removal_error = support.value(support::REMOVAL_ERROR).is_some();
    let wrong = match (deprecated, removed) {
        (Some(deprecated), _) if deprecated < introduced => "is deprecated before it is introduced",
        (Some(_), _) if !has_warning => "is deprecated and needs a deprecation_warning",
        (None, _) if has_warning => "has a deprecation_warning and is not deprecated",
        (deprecated, Some(removed)) if deprecated.unwrap_or(0) >= removed => {
            "is removed before it is deprecated"
        }
        (_, Some(removed)) if removed < introduced => "is removed before it is introduced",
        (_, Some(removed)) if removed != introduced && !has_removal_error => {
            "is removed and needs a removal_error"
        }
        (_, None) if has_removal_error => "has a removal_error and is not removed",
        _ => return,
    };
    errors.push((at, format!("\"{name}\" {wrong}")));
}

pub(super) fn check_support_of_value(value: &EnumValue, errors: &mut FoundErrors) {
    let support = option_message(&value.options, option::VALUE_FEATURE_SUPPORT);
    check_support(support, &value.name, value.name_at, errors);
}
