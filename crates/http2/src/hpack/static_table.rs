//! The static table (RFC 7541 Appendix A) and look-up by name.

use super::dynamic_table::TableField;

/// Number of entries: indices 1 to 61. Dynamic entries follow (RFC 7541 §2.3.3).
pub(super) const LEN: usize = FIELDS.len();

/// Returns the entry at an index.
#[inline]
pub(super) fn get(index: usize) -> Option<TableField<'static>> {
    FIELDS.get(index.checked_sub(1)?).copied()
}

/// The result of looking up a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StaticMatch {
    /// Index of the field, with equal name and value.
    Field(usize),
    /// Lowest index of a field with this name.
    Name(usize),
    /// The name is not in the table.
    None,
}

/// Looks a field up.
#[inline]
pub(super) fn find(name: &[u8], value: &[u8]) -> StaticMatch {
    let Some(first) = find_name(name) else { return StaticMatch::None };
    for (index, field) in (first..).zip(&FIELDS[first - 1..first - 1 + usize::from(RUNS[first - 1])]) {
        if field.value() == value {
            return StaticMatch::Field(index);
        }
    }
    StaticMatch::Name(first)
}

/// Returns the lowest index of a field with this name.
#[inline]
pub(super) fn find_name(name: &[u8]) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let mut slot = slot_of(name);
    while INDEX_BY_NAME[slot] != 0 {
        let index = usize::from(INDEX_BY_NAME[slot]);
        if FIELDS[index - 1].name() == name {
            return Some(index);
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}

/// Size of the hash table of the 52 names; large enough for few collisions.
const SLOTS: usize = 256;

/// A hash table with linear probing: the index of the first field of each name, 0 for an empty slot.
static INDEX_BY_NAME: [u8; SLOTS] = {
    let mut slots = [0; SLOTS];
    let mut index = 1;
    while index <= LEN {
        let field = FIELDS[index - 1];
        if index == 1 || !same_name(field, FIELDS[index - 2]) {
            let mut slot = slot_of(field.bytes.split_at(field.name_len).0);
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = index as u8;
        }
        index += 1;
    }
    slots
};

/// Number of fields with the same name from each field on; equal names are adjacent.
static RUNS: [u8; LEN] = {
    let mut runs = [1; LEN];
    let mut at = LEN - 1;
    while at > 0 {
        at -= 1;
        if same_name(FIELDS[at], FIELDS[at + 1]) {
            runs[at] = runs[at + 1] + 1;
        }
    }
    runs
};

/// Hashes a name of the table. The factors were found by search; only one pair of names shares a slot.
const fn slot_of(name: &[u8]) -> usize {
    let (middle, last) = (name[name.len() / 2] as usize, name[name.len() - 1] as usize);
    (name.len() + last * 15 + middle * 29) % SLOTS
}

const fn same_name(one: TableField<'_>, other: TableField<'_>) -> bool {
    if one.name_len != other.name_len {
        return false;
    }
    let mut at = 0;
    while at < one.name_len {
        if one.bytes[at] != other.bytes[at] {
            return false;
        }
        at += 1;
    }
    true
}

macro_rules! fields {
    ($(($name:literal, $value:literal),)*) => {
        [$(TableField { bytes: concat!($name, $value).as_bytes(), name_len: $name.len() }),*]
    };
}

const FIELDS: [TableField<'static>; 61] = fields![
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_at_its_index() {
        for index in 1..=LEN {
            let field = get(index).expect("a static field");
            let (name, value) = field.bytes.split_at(field.name_len);
            assert_eq!(find(name, value), StaticMatch::Field(index));
            let first = find_name(name).expect("a static name");
            assert_eq!(get(first).map(TableField::name), Some(name));
            assert!(
                first == 1 || get(first - 1).map(TableField::name) != Some(name),
                "{index} is not the first"
            );
            assert_eq!(find(name, b"no such value"), StaticMatch::Name(first));
        }
    }

    #[test]
    fn index_zero_and_those_past_the_end_are_no_fields() {
        assert!(get(0).is_none());
        assert!(get(LEN + 1).is_none());
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", ":", "grpc-status", "te", ":authorit", ":authorityx", "Host"] {
            assert_eq!(find(name.as_bytes(), b""), StaticMatch::None, "{name}");
        }
    }
}
