//! Aliases of enum values, for which prost-build generates no variant.

use std::collections::HashMap;

use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet};

/// Aliases of each enum by its full name with a leading dot, each with the value that has a variant.
type Aliases = HashMap<String, HashMap<String, String>>;

/// Replaces default values that name an alias by the first value of the same number. The generated code would name a
/// variant that does not exist.
pub(crate) fn resolve(set: &mut FileDescriptorSet) {
    let mut aliases = Aliases::new();
    for file in &set.file {
        let scope = if file.package().is_empty() { String::new() } else { format!(".{}", file.package()) };
        collect(&scope, &file.enum_type, &file.message_type, &mut aliases);
    }
    if aliases.is_empty() {
        return;
    }
    for message in set.file.iter_mut().flat_map(|file| &mut file.message_type) {
        replace(message, &aliases);
    }
}

fn collect(scope: &str, enums: &[EnumDescriptorProto], messages: &[DescriptorProto], aliases: &mut Aliases) {
    for declared in enums {
        let mut first: HashMap<i32, &str> = HashMap::new();
        for value in &declared.value {
            let name = *first.entry(value.number()).or_insert_with(|| value.name());
            if name != value.name() {
                let of_enum = aliases.entry(format!("{scope}.{}", declared.name())).or_default();
                of_enum.insert(value.name().to_owned(), name.to_owned());
            }
        }
    }
    for message in messages {
        let scope = format!("{scope}.{}", message.name());
        collect(&scope, &message.enum_type, &message.nested_type, aliases);
    }
}

fn replace(message: &mut DescriptorProto, aliases: &Aliases) {
    for field in &mut message.field {
        let of_enum = aliases.get(field.type_name());
        if let Some(first) = field.default_value.as_ref().and_then(|value| of_enum?.get(value)) {
            field.default_value = Some(first.clone());
        }
    }
    for nested in &mut message.nested_type {
        replace(nested, aliases);
    }
}
