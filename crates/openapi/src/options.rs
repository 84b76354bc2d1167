//! Descriptor options used in the documentation: `deprecated`, and Google's annotations of fields and resources.

use thalweg_protobuf::{EnumType, EnumValue, Field, MessageType, Method, Service};

use crate::records::{Record, Records};

/// Number of the extension `google.api.field_behavior` of `google.protobuf.FieldOptions`.
const FIELD_BEHAVIOR: u32 = 1052;
/// Number of the extension `google.api.resource` of `google.protobuf.MessageOptions`.
const RESOURCE: u32 = 1053;

/// Access to the option `deprecated`.
pub(crate) trait Deprecated {
    fn is_deprecated(&self) -> bool;
}

macro_rules! deprecated {
    ($($type:ident: $number:literal),*) => {$(
        impl Deprecated for $type<'_> {
            fn is_deprecated(&self) -> bool {
                flag(self.options(), $number)
            }
        }
    )*};
}

deprecated!(EnumType: 3, EnumValue: 1, Field: 3, MessageType: 3, Method: 33, Service: 33);

/// `google.api.field_behavior`; a field may have several values.
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a field")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behavior {
    pub(crate) is_required: bool,
    pub(crate) is_output_only: bool,
    pub(crate) is_input_only: bool,
    pub(crate) is_immutable: bool,
}

impl Behavior {
    /// Reads the annotations. Fields that the language requires are required, too.
    pub(crate) fn of(field: Field<'_>) -> Behavior {
        let mut behavior = Behavior { is_required: field.is_required(), ..Behavior::default() };
        let annotations = Records::of(field.options()).filter(|(number, _)| *number == FIELD_BEHAVIOR);
        for annotation in annotations.flat_map(|(_, record)| record.numbers()) {
            match annotation {
                2 => behavior.is_required = true,
                3 => behavior.is_output_only = true,
                4 => behavior.is_input_only = true,
                5 => behavior.is_immutable = true,
                _ => {}
            }
        }
        behavior
    }
}

/// Returns the type of `google.api.resource`, and the patterns of its names.
pub(crate) fn resource(message: MessageType<'_>) -> Option<(String, Vec<String>)> {
    let resources = Records::of(message.options()).filter(|(number, _)| *number == RESOURCE);
    let Some((_, Record::Len(resource))) = resources.last() else { return None };
    let texts = |of: u32| {
        let records = Records::of(resource).filter(move |(number, _)| *number == of);
        records.filter_map(|(_, record)| record.text().map(str::to_owned))
    };
    Some((texts(1).last()?, texts(2).collect()))
}

fn flag(options: &[u8], number: u32) -> bool {
    last(options, number).is_some_and(|value| value != 0)
}

fn last(options: &[u8], number: u32) -> Option<u64> {
    let numbers = Records::of(options).filter(|(of, _)| *of == number);
    numbers.flat_map(|(_, record)| record.numbers()).last()
}
