//! Field numbers of descriptors, for paths in source info.

pub(in crate::sources) mod file {
    pub(in crate::sources) const PACKAGE: i32 = 2;
    pub(in crate::sources) const DEPENDENCY: i32 = 3;
    pub(in crate::sources) const MESSAGE: i32 = 4;
    pub(in crate::sources) const ENUM: i32 = 5;
    pub(in crate::sources) const SERVICE: i32 = 6;
    pub(in crate::sources) const EXTENSION: i32 = 7;
    pub(in crate::sources) const OPTIONS: i32 = 8;
    pub(in crate::sources) const PUBLIC_DEPENDENCY: i32 = 10;
    pub(in crate::sources) const WEAK_DEPENDENCY: i32 = 11;
    pub(in crate::sources) const SYNTAX: i32 = 12;
    pub(in crate::sources) const OPTION_DEPENDENCY: i32 = 15;
}
pub(in crate::sources) mod message {
    pub(in crate::sources) const FIELD: i32 = 2;
    pub(in crate::sources) const MESSAGE: i32 = 3;
    pub(in crate::sources) const ENUM: i32 = 4;
    pub(in crate::sources) const EXTENSION_RANGE: i32 = 5;
    pub(in crate::sources) const EXTENSION: i32 = 6;
    pub(in crate::sources) const OPTIONS: i32 = 7;
    pub(in crate::sources) const ONEOF: i32 = 8;
    pub(in crate::sources) const RESERVED_RANGE: i32 = 9;
    pub(in crate::sources) const RESERVED_NAME: i32 = 10;
}
pub(in crate::sources) mod field {
    pub(in crate::sources) const NUMBER: i32 = 3;
    pub(in crate::sources) const LABEL: i32 = 4;
    pub(in crate::sources) const TYPE: i32 = 5;
    pub(in crate::sources) const TYPE_NAME: i32 = 6;
    pub(in crate::sources) const DEFAULT_VALUE: i32 = 7;
    pub(in crate::sources) const OPTIONS: i32 = 8;
    pub(in crate::sources) const JSON_NAME: i32 = 10;
}
/// Number of `name`, which is 1 in all of them.
pub(in crate::sources) const NAME: i32 = 1;
