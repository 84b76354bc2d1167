//! Edition [features](https://protobuf.dev/editions/features/) of fields and enums. A file, message or field inherits
//! them from its scope. proto2 and proto3 are editions with fixed features.

use super::error::Problem;
use super::raw::{self, Value, records};
use crate::wire::Reader;

/// The language of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Edition {
    /// `syntax = "proto2"`, or no syntax
    Proto2,
    /// `syntax = "proto3"`
    Proto3,
    /// `edition = "2023"`
    Edition2023,
    /// `edition = "2024"`
    Edition2024,
}

impl Edition {
    pub(super) fn of(file: &raw::File<'_>) -> Result<Edition, Problem> {
        match (file.syntax, file.edition) {
            // A compiler may also state the edition of the older languages: 998 and 999.
            ("" | "proto2", None | Some(998)) => Ok(Edition::Proto2),
            ("proto3", None) | ("" | "proto3", Some(999)) => Ok(Edition::Proto3),
            ("editions", Some(1000)) => Ok(Edition::Edition2023),
            ("editions", Some(1001)) => Ok(Edition::Edition2024),
            ("editions", Some(number)) => Err(Problem::Edition(match number {
                1002.. if number < 1100 => format!("later than 2024 (number {number})"),
                _ => format!("number {number}"),
            })),
            ("editions", None) => Err(Problem::Edition("without a number".to_owned())),
            (syntax, _) => Err(Problem::Syntax(syntax.to_owned())),
        }
    }
}

/// The presence rule of a singular field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldPresence {
    Explicit,
    Implicit,
    Required,
}

/// The features of `google.protobuf.FeatureSet` that matter at run time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "features are independent of each other")]
pub(super) struct Features {
    pub(super) presence: FieldPresence,
    pub(super) closed_enum: bool,
    pub(super) packed: bool,
    pub(super) utf8: bool,
    pub(super) delimited: bool,
    /// `json_format = LEGACY_BEST_EFFORT`: JSON names may conflict.
    pub(super) loose_json: bool,
}

/// Field numbers of `features` in each options message.
pub(super) mod number {
    pub(in crate::schema) const FILE: u32 = 50;
    pub(in crate::schema) const MESSAGE: u32 = 12;
    pub(in crate::schema) const FIELD: u32 = 21;
    pub(in crate::schema) const ONEOF: u32 = 1;
    pub(in crate::schema) const ENUM: u32 = 7;
}

impl Features {
    pub(super) fn of(edition: Edition) -> Features {
        let proto2 = edition == Edition::Proto2;
        Features {
            presence: if edition == Edition::Proto3 {
                FieldPresence::Implicit
            } else {
                FieldPresence::Explicit
            },
            closed_enum: proto2,
            packed: !proto2,
            utf8: !proto2,
            delimited: false,
            loose_json: proto2,
        }
    }

    /// Returns these features with the overrides in field `number` of `options`.
    pub(super) fn with(mut self, edition: Edition, options: &[u8], number: u32) -> Result<Features, Problem> {
        records(Reader::new(options), |found, value| {
            if let (true, Value::Len(set)) = (found == number, value) {
                if edition < Edition::Edition2023 {
                    return Err(Problem::Invalid("features need an edition; proto2 and proto3 have none"));
                }
                records(set, |feature, value| match value {
                    Value::Varint(value) => self.set(feature, value),
                    _ => Ok(()),
                })?;
            }
            Ok(())
        })?;
        Ok(self)
    }

    fn set(&mut self, feature: u32, value: u64) -> Result<(), Problem> {
        match (feature, value) {
            (1, 1) => self.presence = FieldPresence::Explicit,
            (1, 2) => self.presence = FieldPresence::Implicit,
            (1, 3) => self.presence = FieldPresence::Required,
            (2, 1) => self.closed_enum = false,
            (2, 2) => self.closed_enum = true,
            (3, 1) => self.packed = true,
            (3, 2) => self.packed = false,
            (4, 2) => self.utf8 = true,
            (4, 3) => self.utf8 = false,
            (5, 1) => self.delimited = false,
            (5, 2) => self.delimited = true,
            (6, 1) => self.loose_json = false,
            (6, 2) => self.loose_json = true,
            (1..=6, _) => return Err(Problem::Invalid("unknown value of a feature")),
            // The other features concern compiler checks, or a single language.
            _ => {}
        }
        Ok(())
    }
}
