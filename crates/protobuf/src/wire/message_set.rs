//! Tags of a message set: `repeated group Item = 1 { required int32 type_id = 2; required bytes message = 3; }`

use super::tag::{Tag, WireType};

pub(crate) const ITEM: u32 = Tag::new(1, WireType::StartGroup).bits();
pub(crate) const ITEM_END: u32 = Tag::new(1, WireType::EndGroup).bits();
pub(crate) const TYPE_ID: u32 = Tag::new(2, WireType::Varint).bits();
pub(crate) const MESSAGE: u32 = Tag::new(3, WireType::Len).bits();
