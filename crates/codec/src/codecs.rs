//! The codecs, one file per family.

pub(crate) mod buffa;
pub(crate) mod engine;
pub(crate) mod prost;
pub(crate) mod reflect;
pub(crate) mod serde;
