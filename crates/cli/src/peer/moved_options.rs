//! Lab options that moved from `thalweg load` to `thalweg peer load`, and still work with `load`.

use std::ffi::OsString;

/// The moved options, with or without `=VALUE`.
const MOVED_OPTIONS: [&str; 13] = [
    "--bare",
    "--active",
    "--variant",
    "--method",
    "--hex",
    "--echo",
    "--echo-proto",
    "--echo-type",
    "--echo-messages",
    "--protocol",
    "--times",
    "--prepared",
    "--gzip",
];

/// Returns the words of `peer load` and the option if `words` are a `load` with a moved option.
pub(crate) fn redirected_from_load(words: &[OsString]) -> Option<(Vec<OsString>, &'static str)> {
    let (program, rest) = words.split_first()?;
    let rest = rest.strip_prefix(&[OsString::from("load")])?;
    let is_it = |word: &OsString, option: &str| {
        let word = word.to_str().unwrap_or_default();
        word.strip_prefix(option).is_some_and(|behind| behind.is_empty() || behind.starts_with('='))
    };
    let options = rest.iter().take_while(|word| *word != "--");
    let option =
        options.into_iter().find_map(|word| MOVED_OPTIONS.into_iter().find(|option| is_it(word, option)))?;
    let words = [program.clone(), "peer".into(), "load".into()].into_iter().chain(rest.iter().cloned());
    Some((words.collect(), option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, &str)>) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let found = redirected_from_load(&words).map(|(words, option)| {
            let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
            (words.join(" "), option)
        });
        assert_eq!(found, expected.map(|(line, option)| (line.to_owned(), option)), "{line}");
    }

    #[test]
    fn lab_options_redirect_to_peer_load() {
        check("thalweg load h:1 --bare grpc", Some(("thalweg peer load h:1 --bare grpc", "--bare")));
        check("thalweg load --echo=person h:1", Some(("thalweg peer load --echo=person h:1", "--echo")));
        check(
            "thalweg load h:1 --call a.B/C --times 3",
            Some(("thalweg peer load h:1 --call a.B/C --times 3", "--times")),
        );
        check("thalweg load h:1 --size 3 -z 1s", None);
        check("thalweg load h:1 --echoes", None);
        check("thalweg load h:1 -- --bare", None);
        check("thalweg call h:1 --bare", None);
        check("thalweg", None);
    }
}
