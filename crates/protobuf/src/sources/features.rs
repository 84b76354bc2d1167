//! Edition features, <https://protobuf.dev/editions/features/>. proto2 and proto3 are editions with fixed features.

use super::edition::Edition;
use super::option_value::OptionMessage;

/// Number of features that `google.protobuf.FeatureSet` itself defines.
const COUNT: usize = 9;

/// The features that the compiler uses, by their numbers in `google.protobuf.FeatureSet`. 0 is unset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Features([u8; COUNT + 1]);

/// Field numbers of `FeatureSet`.
pub(super) mod number {
    pub(in crate::sources) const FIELD_PRESENCE: usize = 1;
    pub(in crate::sources) const ENUM_TYPE: usize = 2;
    pub(in crate::sources) const REPEATED_FIELD_ENCODING: usize = 3;
    pub(in crate::sources) const UTF8_VALIDATION: usize = 4;
    pub(in crate::sources) const MESSAGE_ENCODING: usize = 5;
    pub(in crate::sources) const JSON_FORMAT: usize = 6;
    pub(in crate::sources) const ENFORCE_NAMING_STYLE: usize = 7;
    pub(in crate::sources) const DEFAULT_SYMBOL_VISIBILITY: usize = 8;
}

/// Values of features.
pub(super) mod value {
    pub(in crate::sources) const IMPLICIT: u8 = 2;
    pub(in crate::sources) const LEGACY_REQUIRED: u8 = 3;
    pub(in crate::sources) const CLOSED: u8 = 2;
    pub(in crate::sources) const PACKED: u8 = 1;
    pub(in crate::sources) const EXPANDED: u8 = 2;
    pub(in crate::sources) const DELIMITED: u8 = 2;
    pub(in crate::sources) const LEGACY_BEST_EFFORT: u8 = 2;
    pub(in crate::sources) const STYLE_LEGACY: u8 = 2;
    pub(in crate::sources) const EXPORT_TOP_LEVEL: u8 = 2;
    pub(in crate::sources) const LOCAL_ALL: u8 = 3;
    pub(in crate::sources) const STRICT: u8 = 4;
}

impl Features {
    /// Returns the defaults of an edition: `edition_defaults` in `descriptor.proto`.
    pub(super) fn of(edition: Edition) -> Features {
        Features(match edition {
            Edition::PROTO2 => [0, 1, 2, 2, 3, 1, 2, 2, 1, 1],
            Edition::PROTO3 => [0, 2, 1, 1, 2, 1, 1, 2, 1, 1],
            Edition::E2024 => [0, 1, 1, 1, 2, 1, 1, 1, 2, 1],
            Edition::E2026 => [0, 1, 1, 1, 2, 1, 1, 3, 4, 2],
            _ => [0, 1, 1, 1, 2, 1, 1, 2, 1, 1],
        })
    }

    /// Returns the features that are set in a `FeatureSet`.
    pub(super) fn explicit(set: &OptionMessage) -> Features {
        let mut features = Features::default();
        for (number, value) in features.0.iter_mut().enumerate() {
            // 255 is an unknown value too, but distinct from unset.
            *value =
                set.varint(number as i32).map_or(0, |value| if value == 0 { u8::MAX } else { value as u8 });
        }
        features
    }

    pub(super) fn get(self, number: usize) -> u8 {
        self.0[number]
    }

    pub(super) fn has(self, number: usize) -> bool {
        self.0[number] != 0
    }

    pub(super) fn set(&mut self, number: usize, value: u8) {
        self.0[number] = value;
    }

    /// Returns these features, overridden by those that `inner` sets.
    pub(super) fn with(self, inner: Features) -> Features {
        let mut merged = self;
        for (merged, inner) in merged.0.iter_mut().zip(inner.0) {
            if inner != 0 {
                *merged = inner;
            }
        }
        merged
    }

    /// Returns the first feature that is explicitly set to unknown.
    pub(super) fn unknown(self) -> Option<usize> {
        self.0.iter().position(|&value| value == u8::MAX)
    }

    pub(super) fn is_implicit(self) -> bool {
        self.get(number::FIELD_PRESENCE) == value::IMPLICIT
    }

    pub(super) fn is_required(self) -> bool {
        self.get(number::FIELD_PRESENCE) == value::LEGACY_REQUIRED
    }

    pub(super) fn is_closed(self) -> bool {
        self.get(number::ENUM_TYPE) == value::CLOSED
    }

    pub(super) fn is_packed(self) -> bool {
        self.get(number::REPEATED_FIELD_ENCODING) == value::PACKED
    }

    pub(super) fn is_delimited(self) -> bool {
        self.get(number::MESSAGE_ENCODING) == value::DELIMITED
    }
}
