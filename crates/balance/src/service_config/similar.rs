//! Similar names, for messages.

/// Minimum similarity (Jaro–Winkler): `method_config` is like `methodConfig`, `timeout` is not like `name`.
const SIMILARITY_MIN: f64 = 0.85;

/// Returns the most similar one of the known names, if one is similar.
pub(super) fn most_similar<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&known.to_ascii_lowercase(), &name);
    let rated = known.into_iter().map(|known| (similarity(known), known));
    let similar = rated.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["name", "timeout", "waitForReady", "retryPolicy", "round_robin", "weighted_round_robin"];
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(most_similar(name, known), expected, "{name}");
        };
        check("timout", Some("timeout"));
        check("wait_for_ready", Some("waitForReady"));
        check("WAITFORREADY", Some("waitForReady"));
        check("round_robbin", Some("round_robin"));
        check("fastest", None);
        check("", None);
    }
}
