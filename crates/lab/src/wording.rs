//! How sentences are put together.

/// `3 connections`, `1 connection`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `a, b and c`.
pub(crate) fn enumerated(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// With a capital at its beginning.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_sentences() {
        assert_eq!([counted(1, "window"), counted(2, "window")], ["1 window", "2 windows"]);
        assert_eq!(enumerated(&["a", "b", "c"].map(str::to_owned)), "a, b and c");
        assert_eq!(capitalised("ärger"), "Ärger");
    }
}
