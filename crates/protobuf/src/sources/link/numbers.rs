//! Checks for duplicate and reserved numbers. All checks take O(n log n): a file may have a hundred thousand ranges.

use std::collections::HashSet;

use super::Linker;
use crate::sources::ids::{EnumId, FileId, MessageId};
use crate::sources::pool::NumberRange;

/// Sorted ranges, to look up a number or another range.
struct Ranges {
    /// Sorted by start; the end is exclusive.
    sorted: Vec<(i64, i64, usize)>,
}

impl Ranges {
    fn new(ranges: impl Iterator<Item = (i64, i64)>) -> Ranges {
        let mut sorted: Vec<_> =
            ranges.enumerate().map(|(index, (start, end))| (start, end, index)).collect();
        sorted.sort_unstable();
        Ranges { sorted }
    }

    /// Returns pairs of indices of overlapping ranges, at least one for each range that overlaps an earlier one.
    fn overlaps(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut widest: Option<(i64, usize)> = None;
        for &(start, end, index) in &self.sorted {
            if let Some((last, other)) = widest
                && start < last
            {
                pairs.push((index.min(other), index.max(other)));
            }
            if widest.is_none_or(|(last, _)| end > last) {
                widest = Some((end, index));
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// Returns the index of a range that intersects `start..end`. Exact only if the ranges do not overlap each other.
    fn find(&self, start: i64, end: i64) -> Option<usize> {
        let before = self.sorted.partition_point(|&(first, ..)| first < end);
        let &(_, last, index) = self.sorted.get(before.checked_sub(1)?)?;
        (start < last).then_some(index)
    }
}

fn of_message(range: &NumberRange) -> (i64, i64) {
    (i64::from(range.start), i64::from(range.end))
}

fn of_enum(range: &NumberRange) -> (i64, i64) {
    (i64::from(range.start), i64::from(range.end) + 1)
}

impl Linker {
    /// Checks that fields, reserved numbers and names, and extension ranges of a message do not conflict.
    pub(super) fn check_overlaps(&mut self, file: FileId, message: MessageId) {
        let declared = &self.pool[message];
        let reserved = Ranges::new(declared.reserved.iter().map(of_message));
        let extensions =
            Ranges::new(declared.extension_ranges.iter().map(|extension| of_message(&extension.range)));
        let mut errors = Vec::new();
        for (first, second) in reserved.overlaps() {
            let (first, second) = (declared.reserved[first], declared.reserved[second]);
            errors.push((first.at, format!("reserved range {} overlaps {}", shown(second), shown(first))));
        }
        let mut names = HashSet::new();
        for name in &declared.reserved_names {
            if !names.insert(name.clone()) {
                errors.push((declared.name_at, format!("field name \"{name}\" is reserved twice")));
            }
        }
        for &field in &declared.fields {
            let field = &self.pool[field];
            let number = i64::from(field.number);
            let (name, number_shown) = (&field.name, field.number);
            if let Some(index) = extensions.find(number, number + 1) {
                let range = declared.extension_ranges[index].range;
                let message =
                    format!("extension range {} includes field \"{name}\" ({number_shown})", shown(range));
                errors.push((range.at, message));
            }
            if let Some(index) = reserved.find(number, number + 1) {
                let message = format!("field \"{name}\" uses the reserved number {number_shown}");
                errors.push((declared.reserved[index].at, message));
            }
            if names.contains(name) {
                errors.push((field.at.name, format!("field name \"{name}\" is reserved")));
            }
        }
        for extension in &declared.extension_ranges {
            let range = extension.range;
            if let Some(index) = reserved.find(i64::from(range.start), i64::from(range.end)) {
                let other = shown(declared.reserved[index]);
                errors.push((
                    range.at,
                    format!("extension range {} overlaps reserved range {other}", shown(range)),
                ));
            }
        }
        for (first, second) in extensions.overlaps() {
            let range = |index: usize| declared.extension_ranges[index].range;
            let message =
                format!("extension range {} overlaps {}", shown(range(second)), shown(range(first)));
            errors.push((range(first).at, message));
        }
        for (at, message) in errors {
            self.pool.error(file, at, message);
        }
    }

    /// Checks the values of an enum in the same way.
    pub(super) fn check_reserved_values(&mut self, file: FileId, declared: EnumId) {
        let declared = &self.pool[declared];
        let reserved = Ranges::new(declared.reserved.iter().map(of_enum));
        let mut errors = Vec::new();
        for (first, second) in reserved.overlaps() {
            let (first, second) = (declared.reserved[first], declared.reserved[second]);
            let message = format!(
                "reserved range {} to {} overlaps {} to {}",
                second.start, second.end, first.start, first.end
            );
            errors.push((first.at, message));
        }
        let mut names = HashSet::new();
        for name in &declared.reserved_names {
            if !names.insert(name.clone()) {
                errors.push((declared.name_at, format!("enum value \"{name}\" is reserved twice")));
            }
        }
        for value in &declared.values {
            let number = i64::from(value.number);
            if let Some(index) = reserved.find(number, number + 1) {
                let message = format!("enum value \"{}\" uses the reserved number {number}", value.name);
                errors.push((declared.reserved[index].at, message));
            }
            if names.contains(&value.name) {
                errors.push((value.name_at, format!("enum value \"{}\" is reserved", value.name)));
            }
        }
        for (at, message) in errors {
            self.pool.error(file, at, message);
        }
    }
}

/// Formats a range of a message as in source text: `4 to 8`.
fn shown(range: NumberRange) -> String {
    format!("{} to {}", range.start, range.end.wrapping_sub(1))
}
