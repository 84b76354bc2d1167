//! Received heads: what makes a header block a request, a response or trailers.

use crate::fields::{Field, FieldList};

/// A received, validated head: of a request or a response, or trailers.
#[derive(Clone, Debug, Default)]
pub struct Head {
    id: u64,
    fields: FieldList,
    status: Option<u16>,
    content_length: Option<u64>,
}

impl Head {
    /// Equal ids within one connection mean equal heads: the same header block met the same HPACK table.
    /// Lets the owner keep what it derived from a head.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// `:method` of a request.
    pub fn method(&self) -> Option<&[u8]> {
        self.fields.get(b":method")
    }

    /// `:scheme` of a request.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.fields.get(b":scheme")
    }

    /// `:authority` of a request.
    pub fn authority(&self) -> Option<&[u8]> {
        self.fields.get(b":authority")
    }

    /// `:path` of a request.
    pub fn path(&self) -> Option<&[u8]> {
        self.fields.get(b":path")
    }

    /// `:status` of a response, 100 to 999.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// `content-length`, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The regular fields in their order, pseudo-headers left out.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().skip_while(|field| field.name.starts_with(b":"))
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.get(name)
    }
}
