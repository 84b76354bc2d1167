//! Encodes descriptors in the order of field numbers, like protoc.

pub(super) mod declarations;
mod options;
mod writer;

use super::ids::FileId;
use super::option_value::OptionMessage;
use super::pool::Pool;
use writer::Writer;

/// Encodes a `google.protobuf.FileDescriptorProto`.
pub(super) fn file(pool: &mut Pool, file: FileId, with_source_info: bool) -> Vec<u8> {
    let mut encoder = declarations::Encoder::new(pool);
    encoder.file(file);
    let (mut writer, stripped) = encoder.finish();
    if with_source_info {
        let mut locations = std::mem::take(&mut pool[file].locations);
        locations.remove(stripped);
        writer.source_info(&locations);
    }
    declarations::tail(pool, file, &mut writer);
    writer.finish()
}

/// Encodes the message value of an option.
pub(super) fn option_message(pool: &Pool, message: &OptionMessage) -> Vec<u8> {
    let mut writer = Writer::default();
    options::message(pool, message, &mut writer, &mut options::StrippedPaths::none());
    writer.finish()
}
