//! Small helpers for writing sentences.

/// Formats a number with its noun, in the plural unless it is 1: `3 connections`, `1 connection`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Joins the parts into an enumeration: `a, b and c`.
pub fn enumerated(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// Capitalises the first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_enumerated_and_capitalised() {
        assert_eq!([counted(1, "window"), counted(2, "window")], ["1 window", "2 windows"]);
        assert_eq!(enumerated(&["a", "b", "c"].map(str::to_owned)), "a, b and c");
        assert_eq!(capitalised("ärger"), "Ärger");
    }
}
