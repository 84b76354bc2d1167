//! Builds the table of a message: the slot of each field, and the lookup by number.

use crate::schema::kind::{Kind, WellKnown};
use crate::schema::pool::{EnumData, MessageData, NONE, Pool};
use crate::schema::table::{Entry, FieldShape, Flags, Table};

/// Numbers up to this are always looked up by index; larger ones only if they are dense enough.
const DENSE_MIN: usize = 32;

/// Lays out a message. `entries` are sorted by number; each field gets its index there.
pub(super) fn table(pool: &mut Pool, message: u32, mut entries: Vec<Entry>) -> Table {
    let data = &pool.messages[message as usize];
    let message_set = data.message_set;
    let presence_words = entries.len().div_ceil(64) as u32;
    let mut next = 1 + presence_words;
    let mut shared = vec![NONE; data.oneofs.len()];
    for entry in &mut entries {
        let oneof = pool.fields[entry.field as usize].oneof as usize;
        if data.oneofs.get(oneof).is_some_and(|oneof| !oneof.synthetic) {
            let slot = &mut shared[oneof];
            if *slot == NONE {
                *slot = next;
                next += 2;
            }
            (entry.slot, entry.case) = (*slot, *slot + 1);
        } else {
            entry.slot = next;
            next += if entry.is_repeated() { 2 } else { 1 };
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        pool.fields[entry.field as usize].entry = index as u16;
    }
    let required = (0..).zip(&entries).filter(|(_, entry)| entry.flags.has(Flags::REQUIRED));
    let required: Box<[u16]> = required.map(|(index, _)| index).collect();
    Table {
        dense: dense(&entries),
        record_words: next,
        presence_words,
        has_required: !required.is_empty(),
        message_set,
        known: None,
        required,
        message,
        entries: entries.into(),
    }
}

/// Completes the tables with facts about other messages: required fields in nested messages, and whether a well-known
/// type has the fields that its name promises.
pub(super) fn complete(pool: &mut Pool) {
    propagate_required(&mut pool.tables);
    let known = |table: &Table| {
        WellKnown::of(&pool.messages[table.message as usize].name)
            .filter(|known| matches_well_known(pool, *known, table))
    };
    let known: Vec<Option<WellKnown>> = pool.tables.iter().map(known).collect();
    for (table, known) in pool.tables.iter_mut().zip(known) {
        table.known = known;
    }
}

/// Sets `has_required` in the tables of messages that can contain one with required fields.
fn propagate_required(tables: &mut [Table]) {
    let mut holders = vec![Vec::new(); tables.len()];
    for (index, table) in tables.iter().enumerate() {
        for entry in table.entries().iter().filter(|entry| entry.kind.is_message()) {
            holders[entry.type_index as usize].push(index);
        }
    }
    let mut reached: Vec<usize> = (0..tables.len()).filter(|&index| tables[index].has_required).collect();
    while let Some(index) = reached.pop() {
        for &holder in &holders[index] {
            if !std::mem::replace(&mut tables[holder].has_required, true) {
                reached.push(holder);
            }
        }
    }
}

/// Returns a lookup table for densely numbered fields, at most four times as long as they are many.
fn dense(entries: &[Entry]) -> Box<[u16]> {
    let reached = entries
        .iter()
        .enumerate()
        .rev()
        .find(|(index, entry)| (entry.number as usize) < DENSE_MIN.max((index + 1) * 4));
    let mut dense = vec![0; reached.map_or(0, |(_, entry)| entry.number as usize + 1)];
    for (index, entry) in entries.iter().enumerate() {
        if let Some(position) = dense.get_mut(entry.number as usize) {
            *position = index as u16 + 1;
        }
    }
    dense.into()
}

/// Whether a type with a well-known name has the expected fields. A schema may come from an untrusted source.
fn matches_well_known(pool: &Pool, known: WellKnown, table: &Table) -> bool {
    let entries = table.entries();
    let is = |index: usize, number, kind, shape| {
        let entry: Option<&Entry> = entries.get(index);
        entry.is_some_and(|entry| {
            let found = if entry.kind.is_message() { Kind::Message } else { entry.kind };
            entry.number == number && found == kind && entry.shape() == shape
        })
    };
    let message_in = |entry: &Entry| -> Option<&MessageData> { pool.messages.get(entry.type_index as usize) };
    let holds = |index: usize, name: &str| {
        entries.get(index).and_then(message_in).is_some_and(|message| *message.name == *name)
    };
    let is_one = |number, kind| is(0, number, kind, FieldShape::Singular);
    match known {
        // It needs no special handling.
        WellKnown::Empty => false,
        WellKnown::Any => {
            entries.len() == 2 && is_one(1, Kind::String) && is(1, 2, Kind::Bytes, FieldShape::Singular)
        }
        WellKnown::Timestamp | WellKnown::Duration => {
            entries.len() == 2 && is_one(1, Kind::Int64) && is(1, 2, Kind::Int32, FieldShape::Singular)
        }
        WellKnown::FieldMask => entries.len() == 1 && is(0, 1, Kind::String, FieldShape::Repeated),
        WellKnown::Struct => {
            let entry = entries.first().filter(|entry| entry.is_map()).map(|entry| pool.table(entry));
            let value = entry.and_then(|entry| entry.entries().get(1));
            let holds_values = value.is_some_and(|value| {
                value.kind == Kind::Message
                    && message_in(value).is_some_and(|message| *message.name == *"google.protobuf.Value")
            });
            entries.len() == 1 && is(0, 1, Kind::Message, FieldShape::Map) && holds_values
        }
        WellKnown::ListValue => {
            entries.len() == 1
                && is(0, 1, Kind::Message, FieldShape::Repeated)
                && holds(0, "google.protobuf.Value")
                && entries[0].kind != Kind::Group
        }
        WellKnown::Value => {
            use Kind::{Bool, Double, Enum, Message, String};
            let kinds = [Enum, Double, String, Bool, Message, Message];
            let is_kind = |(index, kind)| is(index, index as u32 + 1, kind, FieldShape::Singular);
            entries.len() == kinds.len()
                && (0..).zip(kinds).all(is_kind)
                && entries.iter().all(|entry| entry.is_in_oneof() && entry.kind != Kind::Group)
                && holds(4, "google.protobuf.Struct")
                && holds(5, "google.protobuf.ListValue")
                && pool.enums.get(entries[0].type_index as usize).is_some_and(EnumData::is_null)
        }
        WellKnown::Wrapper => {
            entries.len() == 1
                && entries[0].shape() == FieldShape::Singular
                && !entries[0].kind.is_message()
                && entries[0].kind != Kind::Enum
        }
    }
}
