//! Checks that need all names and options resolved. They are those of protoc, at the same positions.

mod enums;
mod extensions;
mod features;
mod fields;
mod files;
mod found_errors;
mod lifetimes;
mod messages;
mod style;

use super::features::{number, value};
use super::ids::{FileId, MessageId};
use super::link::{Linker, Scope};
use super::owner::{Owner, owners};
use super::pool::{Pool, Visibility};

use found_errors::FoundErrors;

type Check<'c> = dyn Fn(&mut Linker, &mut Scope, Owner, &mut FoundErrors) + 'c;

pub(super) fn validate(linker: &mut Linker, scope: &mut Scope) {
    let owners = owners(&linker.pool, scope.file);
    let is_requested = linker.is_requested(scope.file);
    let checks: [&Check<'_>; 4] = [
        &|linker, scope, owner, errors| declaration(linker, scope, owner, errors),
        &|linker, scope, owner, errors| lifetimes::check(&linker.pool, scope.file, owner, errors),
        &|linker, scope, owner, errors| style::check(&linker.pool, scope.file, owner, errors),
        &|linker, scope, owner, errors| {
            visibility(&linker.pool, scope.file, owner, errors);
            // protoc checks these only in the given files.
            if is_requested {
                lifetimes::targets(&linker.pool, owner, errors);
                fields::check_reserved_range(&linker.pool, owner, errors);
            }
        },
    ];
    // Each check assumes that the earlier ones succeeded.
    for check in checks {
        let mut errors = Vec::new();
        for &owner in &owners {
            check(linker, scope, owner, &mut errors);
        }
        for (at, message) in errors {
            linker.pool.error(scope.file, at, message);
        }
        if linker.pool[scope.file].failed {
            return;
        }
    }
}

fn declaration(linker: &mut Linker, scope: &mut Scope, owner: Owner, errors: &mut FoundErrors) {
    match owner {
        Owner::File(file) => files::check(&linker.pool, file, errors),
        Owner::Message(message) => {
            messages::check(linker, scope, message, errors);
            extensions::check_ranges(&linker.pool, message, errors);
        }
        Owner::Field(field) => {
            features::check(&linker.pool, field, errors);
            fields::check(linker, scope, field, errors);
            extensions::check_declared(&linker.pool, field, errors);
        }
        Owner::Enum(declared) => enums::check(linker, scope, declared, errors),
        Owner::Value(declared, index) => enums::check_value(&linker.pool, declared, index, errors),
        Owner::Service(service) => {
            let options = linker.pool[scope.file].options.as_deref();
            let generic = options.is_some_and(|options| options.value.flag(16) || options.value.flag(17));
            if files::is_lite(&linker.pool, scope.file) && generic {
                let message = "a file with optimize_for = LITE_RUNTIME cannot have services, unless \
                               cc_generic_services and java_generic_services are false";
                errors.push((linker.pool[service].name_at, message.to_owned()));
            }
        }
        Owner::Oneof(..) | Owner::Range(..) | Owner::Method(..) => {}
    }
}

/// Under strict visibility, nested declarations cannot be exported, except enums in messages that serve as namespaces.
fn visibility(pool: &Pool, file: FileId, owner: Owner, errors: &mut FoundErrors) {
    let is_strict = pool[file].features.get(number::DEFAULT_SYMBOL_VISIBILITY) == value::STRICT;
    let (name, at, parent, is_exported, is_enum) = match owner {
        Owner::Message(message) => {
            let declared = &pool[message];
            let is_exported = declared.visibility == Visibility::Export;
            (&declared.full_name, declared.name_at, declared.parent, is_exported, false)
        }
        Owner::Enum(declared) => {
            let declared = &pool[declared];
            let is_exported = declared.visibility == Visibility::Export;
            (&declared.full_name, declared.name_at, declared.parent, is_exported, true)
        }
        _ => return,
    };
    let Some(parent) = parent.filter(|_| is_strict && is_exported) else { return };
    if !(is_enum && is_namespace(pool, parent)) {
        errors.push((
            at,
            format!("nested \"{name}\" cannot be exported under strict visibility: move it to the top level"),
        ));
    }
}

fn is_namespace(pool: &Pool, message: MessageId) -> bool {
    let declared = &pool[message];
    let is_local = declared.visibility != Visibility::Export;
    let reserves_all = matches!(&*declared.reserved, [range]
        if range.start == 1 && range.end == super::parse::FIELD_NUMBER_MAX + 1);
    declared.parent.is_none() && is_local && reserves_all
}
