//! Percentages on the command line.

/// Parses `1%` or `0.01`.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / divisor);
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("invalid percentage `{text}`; use 1% or 0.01, up to 100%"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn percentages_and_fractions_are_parsed() {
        assert_eq!((parse("5%"), parse("0.05"), parse("100 %")), (Ok(0.05), Ok(0.05), Ok(1.0)));
        for text in ["", "5", "-1%", "101%", "NaN"] {
            assert!(parse(text).unwrap_err().contains("invalid percentage"), "{text}");
        }
    }
}
