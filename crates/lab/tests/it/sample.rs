//! Studies whose figures are made up.

pub(crate) mod channels;
pub(crate) mod codec;
pub(crate) mod comparison;
