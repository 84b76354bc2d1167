//! Setters of settings that are structs with public fields.

/// Makes a setter for each field: the setting is documented at the field.
macro_rules! setters {
    ($of:ident { $($field:ident: $type:ty,)+ }) => {
        impl $of {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

pub(crate) use setters;
