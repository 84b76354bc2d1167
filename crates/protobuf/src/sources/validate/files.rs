//! Checks of files.

use super::found_errors::FoundErrors;
use crate::sources::edition::Edition;
use crate::sources::features::{number, value};
use crate::sources::ids::FileId;
use crate::sources::pool::{ImportKind, Pool};

pub(super) fn check(pool: &Pool, file: FileId, errors: &mut FoundErrors) {
    let declared = &pool[file];
    if !declared.edition.is_legacy() {
        if declared.features.get(number::FIELD_PRESENCE) == value::LEGACY_REQUIRED {
            errors.push((declared.syntax_at, "fields cannot be required by default".to_owned()));
        }
        if declared.options.as_deref().is_some_and(|options| options.value.flag(27)) {
            let message = "editions have no java_string_check_utf8: use features.(pb.java).utf8_validation";
            errors.push((declared.syntax_at, message.to_owned()));
        }
    }
    if !is_lite(pool, file) {
        let plain = declared.imports.iter().filter(|import| import.kind != ImportKind::Option);
        let lite = plain.filter(|import| import.file.is_some_and(|file| is_lite(pool, file)));
        for import in lite.take(1) {
            let name = &import.name;
            let message = format!(
                "\"{name}\" has optimize_for = LITE_RUNTIME: only files that have it, too, can import it"
            );
            errors.push((import.at, message));
        }
    }
}

/// Whether a file has `optimize_for = LITE_RUNTIME`.
pub(super) fn is_lite(pool: &Pool, file: FileId) -> bool {
    pool[file].options.as_deref().is_some_and(|options| options.value.varint(9) == Some(3))
}

pub(super) fn is_proto3(pool: &Pool, file: FileId) -> bool {
    pool[file].edition == Edition::PROTO3
}
