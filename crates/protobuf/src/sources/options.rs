//! Interprets options: sets the fields of options messages from options as written.

mod aggregate;
mod features;
mod scalar;
mod set;

use super::error::Position;
use super::ids::{FieldId, MessageId};
use super::link::lookup::SymbolFilter;
use super::link::{Linker, Scope};
use super::locations::LocationId;
use super::option_value::{OPTION_DEPTH_MAX, OptionMessage, OptionValue};
use super::owner::{Owner, owners};
use super::pool::{FieldKind, OptionSet, RawValue, Symbol, TypeRef, Uninterpreted};

use scalar::{enum_number, float_value, number_value};

/// An error in an option.
pub(super) struct OptionError {
    pub(super) at: Position,
    pub(super) message: String,
}

type Interpreted<T> = Result<T, OptionError>;

/// Interprets all options of a file, and resolves its features.
///
/// Options that are not extensions come first, because extensions declared in the same file may have features.
pub(super) fn interpret(linker: &mut Linker, scope: &mut Scope) {
    let owners = owners(&linker.pool, scope.file);
    let with_options: Vec<Owner> =
        owners.iter().copied().filter(|owner| owner.options(&linker.pool).is_some()).collect();
    interpret_pass(linker, scope, &with_options, false);
    features::resolve(linker, scope, &owners);
    interpret_pass(linker, scope, &with_options, true);
    for owner in with_options {
        if let Some(options) = owner.options_mut(&mut linker.pool) {
            options.uninterpreted = Vec::new();
        }
    }
}

fn interpret_pass(linker: &mut Linker, scope: &mut Scope, owners: &[Owner], extensions: bool) {
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
    linker: &Linker,
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
    // Drop the number of `uninterpreted_option` and its index.
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

/// Returns the type of a declaration's options.
fn options_message(linker: &Linker, owner: Owner) -> Option<MessageId> {
    let name = format!("google.protobuf.{}", owner.options_type());
    let root = linker.root();
    match linker.pool[linker.pool.descend(root, &name)?].entry?.symbol {
        Symbol::Message(message) => Some(message),
        _ => None,
    }
}

fn option_field(
    linker: &Linker,
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
    match linker.lookup(scope, &part.name, from, SymbolFilter::Any) {
        Ok(Symbol::Field(field)) if pool[field].message == Some(message) => Ok(field),
        Ok(Symbol::Field(_)) => {
            Err(format!("\"{shown}\" is not an option of \"{}\"", pool[message].full_name))
        }
        Ok(_) => Err(format!("unknown option \"{shown}\"")),
        Err(missing) => Err(match linker.missing_reason(&missing) {
            Some(why) => format!("unknown option \"{shown}\": {why}"),
            None => format!("unknown option \"{shown}\": import the file that defines it"),
        }),
    }
}

/// Converts the value of an option to the type of its field.
fn option_value(
    linker: &Linker,
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
    let kind = declared.kind.unwrap_or(FieldKind::Message);
    match kind {
        FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => match signed(value) {
            Some(Ok(value)) if i32::try_from(value).is_ok() => Ok(number_value(kind, value as u64)),
            Some(_) => fail("in the range of int32"),
            None => fail("an integer"),
        },
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => match signed(value) {
            Some(Ok(value)) => Ok(number_value(kind, value as u64)),
            Some(Err(())) => fail("in the range of int64"),
            None => fail("an integer"),
        },
        FieldKind::Uint32 | FieldKind::Fixed32 => match value {
            RawValue::Positive(value) if u32::try_from(*value).is_ok() => Ok(number_value(kind, *value)),
            RawValue::Positive(_) => fail("in the range of uint32"),
            _ => fail("an integer that is not negative"),
        },
        FieldKind::Uint64 | FieldKind::Fixed64 => match value {
            RawValue::Positive(value) => Ok(number_value(kind, *value)),
            _ => fail("an integer that is not negative"),
        },
        FieldKind::Float | FieldKind::Double => match float(value) {
            Some(value) => Ok(float_value(kind, value)),
            None => fail("a number"),
        },
        FieldKind::Bool => match value {
            RawValue::Identifier(value) if **value == *"true" => Ok(OptionValue::Varint(1)),
            RawValue::Identifier(value) if **value == *"false" => Ok(OptionValue::Varint(0)),
            _ => fail("\"true\" or \"false\""),
        },
        FieldKind::Enum => {
            let (RawValue::Identifier(value_name), TypeRef::Enum(declared)) = (value, declared.type_ref)
            else {
                return fail("the name of an enum value");
            };
            match enum_number(pool, declared, value_name) {
                Some(number) => Ok(OptionValue::Varint(i64::from(number) as u64)),
                None => fail(&format!(
                    "a value of enum \"{}\", which has no \"{value_name}\"",
                    pool[declared].full_name
                )),
            }
        }
        FieldKind::String | FieldKind::Bytes => match value {
            RawValue::String(value) => Ok(OptionValue::Bytes(value.clone())),
            _ => fail("a string in quotes"),
        },
        FieldKind::Message | FieldKind::Group => match (value, declared.type_ref) {
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

/// Returns the value as an integer: `None` if it is not one, an error if it exceeds 64 bits.
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
