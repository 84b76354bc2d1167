//! Suggestions for misspelled names.

/// Minimum similarity of suggestions.
const LIKENESS_MIN: f64 = 0.75;
/// Maximum number of names listed.
const LISTED: usize = 8;

/// Returns the end of an error about an unknown `name`: similar names, or the available ones.
///
/// ```
/// use thalweg_dynamic::near;
///
/// assert_eq!(near(["shop.Order", "shop.Item"], "Oder"), "; did you mean `shop.Order`?");
/// assert_eq!(near(["shop.Order", "shop.Item"], "xyz"), "; available: shop.Order, shop.Item");
/// ```
pub fn near<'n>(names: impl IntoIterator<Item = &'n str>, name: &str) -> String {
    let name = name.to_lowercase();
    let likeness = |known: &str| {
        let known = known.to_lowercase();
        let own = known.rsplit(['.', '/']).next().unwrap_or_default();
        strsim::jaro_winkler(&known, &name).max(strsim::jaro_winkler(own, &name))
    };
    let names: Vec<&str> = names.into_iter().collect();
    let mut close: Vec<(f64, &str)> = names
        .iter()
        .map(|known| (likeness(known), *known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0));
    close.truncate(3);
    if close.is_empty() {
        let names = listed(names);
        return if names.is_empty() { String::new() } else { format!("; available: {names}") };
    }
    let quoted: Vec<String> = close.iter().map(|(_, name)| format!("`{name}`")).collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

/// Joins names with commas. A long list is shortened.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let more = names.len().saturating_sub(LISTED);
    let shown = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
