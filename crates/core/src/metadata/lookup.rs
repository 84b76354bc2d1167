//! Types that methods of a [`MetadataMap`](super::MetadataMap) accept as a key.

use http::HeaderName;
use http::header::{AsHeaderName, IntoHeaderName};

use super::{MetadataKey, ValueEncoding};

/// A key under which values are found: a [`MetadataKey`] or text. Text of the other encoding finds nothing.
pub trait AsMetadataKey<VE: ValueEncoding>: sealed::Find<VE> {}

/// A key under which values are added: a [`MetadataKey`] or static text.
///
/// # Panics
///
/// Methods panic if static text is not a lower-case key of the encoding.
pub trait IntoMetadataKey<VE: ValueEncoding>: sealed::Add<VE> {}

/// A key of either encoding: a [`MetadataKey`] or text.
pub trait AsEncodingAgnosticMetadataKey: sealed::FindAny {}

pub(super) mod sealed {
    use http::header::{AsHeaderName, IntoHeaderName};

    pub trait Find<VE> {
        type Name: AsHeaderName;
        /// Returns the name, or nothing if it has the other encoding.
        fn name(self) -> Option<Self::Name>;
    }

    pub trait Add<VE> {
        type Name: IntoHeaderName;
        fn name(self) -> Self::Name;
    }

    pub trait FindAny {
        type Name: AsHeaderName;
        fn name(self) -> Self::Name;
    }
}

impl<VE: ValueEncoding> sealed::Find<VE> for MetadataKey<VE> {
    type Name = HeaderName;

    fn name(self) -> Option<HeaderName> {
        Some(self.name)
    }
}

impl<'k, VE: ValueEncoding> sealed::Find<VE> for &'k MetadataKey<VE> {
    type Name = &'k HeaderName;

    fn name(self) -> Option<&'k HeaderName> {
        Some(&self.name)
    }
}

impl<VE: ValueEncoding> AsMetadataKey<VE> for MetadataKey<VE> {}
impl<VE: ValueEncoding> AsMetadataKey<VE> for &MetadataKey<VE> {}

impl<VE: ValueEncoding> sealed::FindAny for MetadataKey<VE> {
    type Name = HeaderName;

    fn name(self) -> HeaderName {
        self.name
    }
}

impl<'k, VE: ValueEncoding> sealed::FindAny for &'k MetadataKey<VE> {
    type Name = &'k HeaderName;

    fn name(self) -> &'k HeaderName {
        &self.name
    }
}

impl<VE: ValueEncoding> AsEncodingAgnosticMetadataKey for MetadataKey<VE> {}
impl<VE: ValueEncoding> AsEncodingAgnosticMetadataKey for &MetadataKey<VE> {}

macro_rules! text {
    ($($text:ty)*) => { $(
        impl<VE: ValueEncoding> sealed::Find<VE> for $text
        where
            Self: AsHeaderName,
        {
            type Name = Self;

            fn name(self) -> Option<Self> {
                VE::is_valid_key(self.as_ref()).then_some(self)
            }
        }

        impl<VE: ValueEncoding> AsMetadataKey<VE> for $text {}

        impl sealed::FindAny for $text {
            type Name = Self;

            fn name(self) -> Self {
                self
            }
        }

        impl AsEncodingAgnosticMetadataKey for $text {}
    )* };
}

text!(&str String &String);

impl<VE: ValueEncoding> sealed::Add<VE> for MetadataKey<VE> {
    type Name = HeaderName;

    fn name(self) -> HeaderName {
        self.name
    }
}

impl<'k, VE: ValueEncoding> sealed::Add<VE> for &'k MetadataKey<VE>
where
    &'k HeaderName: IntoHeaderName,
{
    type Name = &'k HeaderName;

    fn name(self) -> &'k HeaderName {
        &self.name
    }
}

impl<VE: ValueEncoding> sealed::Add<VE> for &'static str {
    type Name = Self;

    fn name(self) -> Self {
        assert!(VE::is_valid_key(self), "invalid metadata key: {self:?} has values of the other encoding");
        self
    }
}

impl<VE: ValueEncoding> IntoMetadataKey<VE> for MetadataKey<VE> {}
impl<VE: ValueEncoding> IntoMetadataKey<VE> for &MetadataKey<VE> {}
impl<VE: ValueEncoding> IntoMetadataKey<VE> for &'static str {}
