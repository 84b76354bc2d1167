//! Suggestions for misspelled names.

/// Minimum similarity of suggestions.
const SIMILARITY_MIN: f64 = 0.75;
/// Maximum number of names listed.
const LISTED_MAX: usize = 8;

/// Returns the end of an error about an unknown `name`: similar names, or the available ones.
///
/// ```
/// use thalweg_dynamic::suggest;
///
/// assert_eq!(suggest(["shop.Order", "shop.Item"], "Oder"), "; did you mean `shop.Order`?");
/// assert_eq!(suggest(["shop.Order", "shop.Item"], "xyz"), "; available: shop.Order, shop.Item");
/// ```
pub fn suggest<'n>(names: impl IntoIterator<Item = &'n str>, name: &str) -> String {
    let name = name.to_lowercase();
    let similarity = |known: &str| {
        let known = known.to_lowercase();
        let last_part = known.rsplit(['.', '/']).next().unwrap_or_default();
        strsim::jaro_winkler(&known, &name).max(strsim::jaro_winkler(last_part, &name))
    };
    let names: Vec<&str> = names.into_iter().collect();
    let mut similar: Vec<(f64, &str)> = names
        .iter()
        .map(|known| (similarity(known), *known))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0));
    similar.truncate(3);
    if similar.is_empty() {
        let names = listed(names);
        return if names.is_empty() { String::new() } else { format!("; available: {names}") };
    }
    let quoted: Vec<String> = similar.iter().map(|(_, name)| format!("`{name}`")).collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

/// Joins names with commas. A long list is shortened.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let more = names.len().saturating_sub(LISTED_MAX);
    let shown = names.iter().take(LISTED_MAX).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
