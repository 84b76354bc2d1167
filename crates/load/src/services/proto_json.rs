//! ProtoJSON's deviations from serde's defaults: 64-bit integers are strings, and enums are names. In binary formats,
//! integers are numbers.

/// A 64-bit integer.
pub(crate) mod wide {
    use std::fmt::{self, Display};
    use std::marker::PhantomData;
    use std::str::FromStr;

    use serde::de::{Error, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &(impl Display + Serialize),
        to: S,
    ) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(value) } else { value.serialize(to) }
    }

    pub(crate) fn deserialize<'d, T, D>(from: D) -> Result<T, D::Error>
    where
        T: Deserialize<'d> + FromStr,
        D: Deserializer<'d>,
    {
        if from.is_human_readable() { from.deserialize_str(Text(PhantomData)) } else { T::deserialize(from) }
    }

    /// Parses a string without copying it.
    struct Text<T>(PhantomData<T>);

    impl<T: FromStr> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an integer in a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(|_| E::custom(format_args!("invalid integer `{text}`")))
        }
    }
}

/// An array of 64-bit integers.
pub(crate) mod wide_array {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Wide(#[serde(with = "super::wide")] u64);

    pub(crate) fn serialize<S: Serializer>(values: &[u64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().copied().map(Wide))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u64>, D::Error> {
        let values: Vec<Wide> = Vec::deserialize(from)?;
        Ok(values.into_iter().map(|Wide(value)| value).collect())
    }
}

/// The level of a log record.
pub(crate) mod level {
    use std::fmt;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserializer, Serializer};

    use crate::services::shapes_proto::log_record::Level;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(level: &i32, to: S) -> Result<S::Ok, S::Error> {
        let known = Level::try_from(*level).map_err(serde::ser::Error::custom)?;
        to.serialize_str(known.as_str_name())
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<i32, D::Error> {
        from.deserialize_str(Name)
    }

    struct Name;

    impl Visitor<'_> for Name {
        type Value = i32;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("the name of a level")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<i32, E> {
            let known = Level::from_str_name(name).map(i32::from);
            known.ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
        }
    }
}
