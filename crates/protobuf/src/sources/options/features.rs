//! Resolves the features of each declaration from its own and its parent's.

use crate::sources::edition::Edition;
use crate::sources::features::{Features, number, value};
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::link::{Linker, Scope};
use crate::sources::owner::Owner;
use crate::sources::pool::{Field, FieldKind, Label, Pool, TypeRef};

/// Merges the features of each declaration into those of its parent.
pub(super) fn resolve(linker: &mut Linker, scope: &Scope, owners: &[Owner]) {
    let edition = linker.edition(scope);
    for &owner in owners {
        let pool = &mut linker.pool;
        let mut explicit = Features::default();
        if let Some(options) = owner.options_mut(pool)
            && let Some(set) = options.value.message(owner.features_number())
        {
            explicit = Features::explicit(set);
            options.explicit = explicit;
            let at = match owner {
                Owner::File(file) => pool[file].syntax_at,
                _ => owner.name_at(pool),
            };
            if edition.is_legacy() {
                pool.error(scope.file, at, "features need an edition: proto2 and proto3 have none");
            } else if explicit.unknown().is_some() {
                pool.error(scope.file, at, "a feature must have a known value");
            }
        }
        let merged = features_of(pool, scope, owner, edition).with(explicit);
        match owner {
            Owner::File(file) => pool[file].features = merged,
            Owner::Message(message) => pool[message].features = merged,
            Owner::Enum(declared) => pool[declared].features = merged,
            Owner::Field(field) => {
                let inferred = inferred(edition, &pool[field]);
                pool[field].features = merged.with(inferred);
                if let (true, Some(message)) = (pool[field].features.is_required(), pool[field].message) {
                    pool[message].required.push(field);
                }
                make_delimited(pool, field);
            }
            Owner::Oneof(..)
            | Owner::Range(..)
            | Owner::Value(..)
            | Owner::Service(_)
            | Owner::Method(..) => {}
        }
    }
}

/// Returns the features implied by labels, groups and options of proto2 and proto3.
fn inferred(edition: Edition, field: &Field) -> Features {
    let mut features = Features::default();
    if !edition.is_legacy() {
        return features;
    }
    if field.label == Label::Required {
        features.set(number::FIELD_PRESENCE, value::LEGACY_REQUIRED);
    }
    if field.kind == Some(FieldKind::Group) {
        features.set(number::MESSAGE_ENCODING, value::DELIMITED);
    }
    match field.options.as_deref().and_then(|options| options.value.varint(2)) {
        Some(0) if edition == Edition::PROTO3 => {
            features.set(number::REPEATED_FIELD_ENCODING, value::EXPANDED);
        }
        Some(1..) => features.set(number::REPEATED_FIELD_ENCODING, value::PACKED),
        _ => {}
    }
    features
}

/// Returns the features that a declaration inherits.
fn features_of(pool: &Pool, scope: &Scope, owner: Owner, edition: Edition) -> Features {
    let file = pool[scope.file].features;
    let of_message = |message: Option<MessageId>| message.map_or(file, |message| pool[message].features);
    match owner {
        Owner::File(_) => Features::of(edition),
        Owner::Message(message) => of_message(pool[message].parent),
        Owner::Enum(declared) => of_message(pool[declared].parent),
        Owner::Oneof(message, _) | Owner::Range(message, _) => of_message(Some(message)),
        Owner::Value(declared, _) => pool[declared].features,
        Owner::Service(_) => file,
        Owner::Method(service, _) => {
            let explicit =
                pool[service].options.as_deref().map_or(Features::default(), |options| options.explicit);
            file.with(explicit)
        }
        Owner::Field(field) => {
            let declared = &pool[field];
            let outer = of_message(declared.parent);
            match (declared.oneof, declared.parent) {
                (Some(oneof), Some(parent)) => {
                    let options = pool[parent].oneofs[oneof as usize].options.as_deref();
                    outer.with(options.map_or(Features::default(), |options| options.explicit))
                }
                _ => outer,
            }
        }
    }
}

/// Encodes a message field with `message_encoding = DELIMITED` as a group, unless it is a map.
fn make_delimited(pool: &mut Pool, field: FieldId) {
    let declared = &pool[field];
    let TypeRef::Message(message) = declared.type_ref else { return };
    let in_entry = declared.message.is_some_and(|parent| pool[parent].is_map_entry);
    let is_map = pool[message].is_map_entry;
    if declared.kind == Some(FieldKind::Message) && declared.features.is_delimited() && !in_entry && !is_map {
        pool[field].kind = Some(FieldKind::Group);
    }
}
