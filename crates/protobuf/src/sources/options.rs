//! From options as they are written to fields of options messages.

mod aggregate;

use super::error::Position;
use super::features::Features;
use super::link::{Linker, Scope, Wanted};
use super::locations::LocationId;
use super::option_value::{OptionMessage, OptionValue};
use super::owner::{Owner, owners};
use super::pool::{
    Edition, EnumId, FieldId, Kind, MessageId, OptionSet, Pool, RawValue, Symbol, TypeRef, Uninterpreted,
};

/// Option messages nest at most this deep: what decodes descriptors has a limit of 100 as well.
const OPTION_DEPTH_MAX: usize = 90;

/// An error in an option.
pub(super) struct OptionError {
    pub(super) at: Position,
    pub(super) message: String,
}

type Interpreted<T> = Result<T, OptionError>;

/// Interprets all options of a file, and resolves its features.
///
/// Options that are no extensions come first: extensions of the same file may have features.
pub(super) fn interpret(linker: &mut Linker<'_>, scope: &mut Scope) {
    let owners = owners(&linker.pool, scope.file);
    let with_options: Vec<Owner> =
        owners.iter().copied().filter(|owner| owner.options(&linker.pool).is_some()).collect();
    interpret_pass(linker, scope, &with_options, false);
    resolve_features(linker, scope, &owners);
    interpret_pass(linker, scope, &with_options, true);
    for owner in with_options {
        if let Some(options) = owner.options_mut(&mut linker.pool) {
            options.uninterpreted = Vec::new();
        }
    }
}

fn interpret_pass(linker: &mut Linker<'_>, scope: &mut Scope, owners: &[Owner], extensions: bool) {
    for &owner in owners {
        let Some(mut options) = owner.options_mut(&mut linker.pool).take() else { continue };
        let OptionSet { uninterpreted, value, .. } = &mut *options;
        for option in &*uninterpreted {
            if option.name.first().is_none_or(|part| part.is_extension != extensions) {
                continue;
            }
            match interpret_option(linker, scope, owner, option, value) {
                Ok(path) => {
                    if !option.locations.is_empty() {
                        linker.pool[scope.file].locations.interpret(&option.locations, &path);
                    }
                }
                Err(OptionError { at, message }) => {
                    linker.pool.error(scope.file, at, message);
                    break;
                }
            }
        }
        *owner.options_mut(&mut linker.pool) = Some(options);
    }
}

/// Sets the field that an option names. Returns the path of the field, for source info.
fn interpret_option(
    linker: &Linker<'_>,
    scope: &mut Scope,
    owner: Owner,
    option: &Uninterpreted,
    options: &mut OptionMessage,
) -> Interpreted<Vec<i32>> {
    let name_error = |message: String| OptionError { at: option.name_at, message };
    let pool = &linker.pool;
    let mut path = if option.locations.is_empty() {
        Vec::new()
    } else {
        pool[scope.file].locations.path_of(LocationId(option.locations.start)).to_vec()
    };
    // Without the number of `uninterpreted_option` and its index.
    path.truncate(path.len().saturating_sub(2));
    if option.name.len() > OPTION_DEPTH_MAX {
        return Err(name_error(format!("option name of more than {OPTION_DEPTH_MAX} parts")));
    }
    let mut current = options;
    let mut message =
        options_message(linker, owner).ok_or_else(|| name_error("no options here".to_owned()))?;
    let mut shown = String::new();
    for (index, part) in option.name.iter().enumerate() {
        if index > 0 {
            shown.push('.');
        }
        if part.is_extension {
            shown.extend(["(", &*part.name, ")"]);
        } else {
            shown.push_str(&part.name);
        }
        let field = option_field(linker, scope, owner, message, part, &shown).map_err(name_error)?;
        let declared = &pool[field];
        let first = &option.name[0];
        if declared.file == scope.file && !first.is_extension && *first.name == *"features" {
            return Err(name_error(format!(
                "feature \"{shown}\" cannot be used in the file that defines it"
            )));
        }
        path.push(declared.number);
        if index + 1 == option.name.len() {
            if declared.is_repeated() {
                let count = current.fields.get(&declared.number).map_or(0, |field| field.values.len());
                path.push(count as i32);
            } else if current.fields.contains_key(&declared.number) {
                return Err(name_error(format!("option \"{shown}\" is already set")));
            }
            let value = option_value(linker, scope, field, option)?;
            current.add(pool, field, value);
            break;
        }
        let TypeRef::Message(inner) = declared.type_ref else {
            return Err(name_error(format!("option \"{shown}\" is not a message and has no fields")));
        };
        if declared.is_repeated() {
            let message =
                format!("option \"{shown}\" is a repeated message: set it as a whole, \"{shown} = {{ … }}\"");
            return Err(name_error(message));
        }
        message = inner;
        current = current.enter(pool, field);
    }
    Ok(path)
}

/// The type of the options of a declaration.
fn options_message(linker: &Linker<'_>, owner: Owner) -> Option<MessageId> {
    let name = format!("google.protobuf.{}", owner.options_type());
    let root = linker.root();
    match linker.pool[linker.pool.descend(root, &name)?].entry?.symbol {
        Symbol::Message(message) => Some(message),
        _ => None,
    }
}

fn option_field(
    linker: &Linker<'_>,
    scope: &mut Scope,
    owner: Owner,
    message: MessageId,
    part: &super::pool::NamePart,
    shown: &str,
) -> Result<FieldId, String> {
    let pool = &linker.pool;
    if !part.is_extension {
        if *part.name == *"uninterpreted_option" {
            return Err("option name \"uninterpreted_option\" is reserved".to_owned());
        }
        return pool.field_named(message, &part.name).ok_or_else(|| {
            if shown.contains('.') {
                format!("unknown option \"{shown}\": \"{}\" has no such field", pool[message].full_name)
            } else {
                format!(
                    "unknown option \"{shown}\": custom options are written in parentheses, \"({shown})\""
                )
            }
        });
    }
    let from = owner.scope(pool, scope.package);
    match linker.lookup(scope, &part.name, from, Wanted::Any) {
        Ok(Symbol::Field(field)) if pool[field].message == Some(message) => Ok(field),
        Ok(Symbol::Field(_)) => {
            Err(format!("\"{shown}\" is not an option of \"{}\"", pool[message].full_name))
        }
        Ok(_) => Err(format!("unknown option \"{shown}\"")),
        Err(missing) => Err(match linker.why_missing(&missing) {
            Some(why) => format!("unknown option \"{shown}\": {why}"),
            None => format!("unknown option \"{shown}\": import the file that defines it"),
        }),
    }
}

/// The value of an option for a field of this type.
fn option_value(
    linker: &Linker<'_>,
    scope: &mut Scope,
    field: FieldId,
    option: &Uninterpreted,
) -> Interpreted<OptionValue> {
    let pool = &linker.pool;
    let declared = &pool[field];
    let name = || pool.field_full_name(field);
    let fail = |what: &str| {
        Err(OptionError { at: option.value_at, message: format!("option \"{}\" must be {what}", name()) })
    };
    let value = &option.value;
    let kind = declared.kind.unwrap_or(Kind::Message);
    match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => match signed(value) {
            Some(Ok(value)) if i32::try_from(value).is_ok() => Ok(number_value(kind, value as u64)),
            Some(_) => fail("in the range of int32"),
            None => fail("an integer"),
        },
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => match signed(value) {
            Some(Ok(value)) => Ok(number_value(kind, value as u64)),
            Some(Err(())) => fail("in the range of int64"),
            None => fail("an integer"),
        },
        Kind::Uint32 | Kind::Fixed32 => match value {
            RawValue::Positive(value) if u32::try_from(*value).is_ok() => Ok(number_value(kind, *value)),
            RawValue::Positive(_) => fail("in the range of uint32"),
            _ => fail("an integer that is not negative"),
        },
        Kind::Uint64 | Kind::Fixed64 => match value {
            RawValue::Positive(value) => Ok(number_value(kind, *value)),
            _ => fail("an integer that is not negative"),
        },
        Kind::Float | Kind::Double => match float(value) {
            Some(value) => Ok(float_value(kind, value)),
            None => fail("a number"),
        },
        Kind::Bool => match value {
            RawValue::Identifier(value) if **value == *"true" => Ok(OptionValue::Varint(1)),
            RawValue::Identifier(value) if **value == *"false" => Ok(OptionValue::Varint(0)),
            _ => fail("\"true\" or \"false\""),
        },
        Kind::Enum => {
            let (RawValue::Identifier(wanted), TypeRef::Enum(declared)) = (value, declared.type_ref) else {
                return fail("the name of an enum value");
            };
            match enum_number(pool, declared, wanted) {
                Some(number) => Ok(OptionValue::Varint(i64::from(number) as u64)),
                None => fail(&format!(
                    "a value of enum \"{}\", which has no \"{wanted}\"",
                    pool[declared].full_name
                )),
            }
        }
        Kind::String | Kind::Bytes => match value {
            RawValue::String(value) => Ok(OptionValue::Bytes(value.clone())),
            _ => fail("a string in quotes"),
        },
        Kind::Message | Kind::Group => match (value, declared.type_ref) {
            (RawValue::Aggregate(tokens), TypeRef::Message(message)) => {
                let parsed = aggregate::parse(linker, scope, message, tokens);
                parsed.map(OptionValue::Message).map_err(|message| OptionError {
                    at: option.value_at,
                    message: format!("invalid value of option \"{}\": {message}", name()),
                })
            }
            _ => fail(&format!("a message: \"{0} = {{ … }}\", or \"{0}.field = …\"", declared.name)),
        },
    }
}

/// The integer that is written, if it is one, and if it has 64 bits.
fn signed(value: &RawValue) -> Option<Result<i64, ()>> {
    match value {
        RawValue::Positive(value) => Some(i64::try_from(*value).map_err(|_| ())),
        RawValue::Negative(value) => Some(Ok(*value)),
        _ => None,
    }
}

fn float(value: &RawValue) -> Option<f64> {
    Some(match value {
        RawValue::Double(value) => *value,
        RawValue::Positive(value) => *value as f64,
        RawValue::Negative(value) => *value as f64,
        RawValue::Identifier(name) if **name == *"inf" => f64::INFINITY,
        RawValue::Identifier(name) if **name == *"nan" => f64::NAN,
        _ => return None,
    })
}

/// An integer, sign-extended, as it is on the wire.
fn number_value(kind: Kind, value: u64) -> OptionValue {
    let signed = value as i64;
    match kind {
        Kind::Sint32 | Kind::Sint64 => OptionValue::Varint((signed << 1 ^ signed >> 63) as u64),
        Kind::Fixed32 | Kind::Sfixed32 => OptionValue::Fixed32(value as u32),
        Kind::Fixed64 | Kind::Sfixed64 => OptionValue::Fixed64(value),
        _ => OptionValue::Varint(value),
    }
}

fn float_value(kind: Kind, value: f64) -> OptionValue {
    match kind {
        Kind::Float => OptionValue::Fixed32((value as f32).to_bits()),
        _ => OptionValue::Fixed64(value.to_bits()),
    }
}

fn enum_number(pool: &Pool, declared: EnumId, name: &str) -> Option<i32> {
    pool.value_named(declared, name).map(|value| value.number)
}

/// Merges the features of each declaration with those of what it is in.
fn resolve_features(linker: &mut Linker<'_>, scope: &Scope, owners: &[Owner]) {
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
                let inferred = Features::inferred(edition, &pool[field]);
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

/// The features of what a declaration is in.
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

/// A message field with `message_encoding = DELIMITED` is encoded as a group, unless it is a map.
fn make_delimited(pool: &mut Pool, field: FieldId) {
    let declared = &pool[field];
    let TypeRef::Message(message) = declared.type_ref else { return };
    let in_entry = declared.message.is_some_and(|parent| pool[parent].is_map_entry);
    let is_map = pool[message].is_map_entry;
    if declared.kind == Some(Kind::Message) && declared.features.is_delimited() && !in_entry && !is_map {
        pool[field].kind = Some(Kind::Group);
    }
}
