//! Flags with a fixed set of values.

use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use thalweg::Encoding;

/// Parses one of `names`. `--help` lists them with their descriptions.
pub(crate) fn choice<T, const N: usize>(
    names: [(&'static str, &'static str); N],
) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    let values = names.map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<T>().map_err(|error| error.to_string()))
}

/// Parses the name of one of `encodings`.
pub(crate) fn choice_of<const N: usize>(encodings: [Encoding; N]) -> impl TypedValueParser<Value = Encoding> {
    let find = move |name: String| encodings.into_iter().find(|encoding| encoding.name() == name);
    PossibleValuesParser::new(encodings.map(Encoding::name)).try_map(move |name| find(name).ok_or("unknown"))
}
