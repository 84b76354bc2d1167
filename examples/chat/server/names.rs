//! Rules for the names of users, rooms and files.

use thalweg::Status;

const NAME_LENGTH_MAX: usize = 32;
const FILE_NAME_LENGTH_MAX: usize = 255;

/// Checks the name of a user or a room; `what` says which.
pub(crate) fn check(what: &str, name: &str) -> Result<(), Status> {
    let rule = format!("1 to {NAME_LENGTH_MAX} letters a-z, digits, '-' and '_'");
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(allowed) {
        return Err(Status::invalid_argument(format!("the name of a {what} has {rule}; this is {name:?}")));
    }
    Ok(())
}

/// Checks a name that receivers may save a file under, in a folder of their choice.
pub(crate) fn check_file(name: &str) -> Result<(), Status> {
    let bad = if name.is_empty() || name == "." || name == ".." {
        "is not a file's"
    } else if name.len() > FILE_NAME_LENGTH_MAX {
        "is longer than 255 bytes"
    } else if name.contains(['/', '\\']) {
        "has a path"
    } else if name.chars().any(char::is_control) {
        "has control characters"
    } else {
        return Ok(());
    };
    Err(Status::invalid_argument(format!("the name {name:?} {bad}")))
}

/// Checks a file's SHA-256.
pub(crate) fn check_hash(hash: &[u8]) -> Result<[u8; 32], Status> {
    hash.try_into().map_err(|_| {
        let length = hash.len();
        Status::invalid_argument(format!("a file's hash (SHA-256) has 32 bytes; this has {length}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: &str, allowed: bool| assert_eq!(check("room", name).is_ok(), allowed, "{name:?}");
        check("a", true);
        check("Under_score-9", true);
        check(&"x".repeat(NAME_LENGTH_MAX), true);
        check(&"x".repeat(NAME_LENGTH_MAX + 1), false);
        check("", false);
        check("two words", false);
        check("\u{430}da", false);
    }

    #[test]
    fn file_names() {
        let check = |name: &str, allowed: bool| assert_eq!(check_file(name).is_ok(), allowed, "{name:?}");
        check("holiday photo.jpeg", true);
        check("\u{fc}ber.txt", true);
        check(&"x".repeat(FILE_NAME_LENGTH_MAX), true);
        check(&"x".repeat(FILE_NAME_LENGTH_MAX + 1), false);
        check("", false);
        check("..", false);
        check("../etc/passwd", false);
        check("C:\\autoexec.bat", false);
        check("bell\u{7}", false);
    }
}
