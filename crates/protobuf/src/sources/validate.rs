//! What is wrong although all names and options are known.

use super::link::{Linker, Scope};

pub(super) fn validate(_linker: &mut Linker<'_>, _scope: &mut Scope) {}
