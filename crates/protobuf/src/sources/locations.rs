//! Source info: positions and comments of declarations.

use std::ops::Range;

use super::comments::Comments;
use super::lex::Token;

/// The locations of a file, in protoc's order.
#[derive(Debug, Default)]
pub(super) struct Locations {
    list: Vec<Location>,
    /// All paths, concatenated.
    paths: Vec<i32>,
}

#[derive(Clone, Debug)]
pub(super) struct Location {
    path: Range<u32>,
    start: (u32, u32),
    end: Option<(u32, u32)>,
    comments: Option<Box<Comments>>,
    removed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LocationId(pub(super) u32);

impl Locations {
    pub(super) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(super) fn open(&mut self, parent: &[i32], suffix: &[i32], token: Token) -> LocationId {
        let id = LocationId(self.len());
        let start = self.paths.len() as u32;
        self.paths.extend(parent);
        self.paths.extend(suffix);
        let path = start..self.paths.len() as u32;
        let start = (token.line, token.column);
        self.list.push(Location { path, start, end: None, comments: None, removed: false });
        id
    }

    /// Appends to the path of the location opened last.
    pub(super) fn extend_path(&mut self, id: LocationId, part: i32) {
        let location = &mut self.list[id.0 as usize];
        debug_assert_eq!(location.path.end as usize, self.paths.len(), "a later location is still open");
        self.paths.push(part);
        location.path.end += 1;
    }

    pub(super) fn start_at(&mut self, id: LocationId, token: Token) {
        self.list[id.0 as usize].start = (token.line, token.column);
    }

    pub(super) fn start_of(&self, id: LocationId) -> (u32, u32) {
        self.list[id.0 as usize].start
    }

    pub(super) fn set_start(&mut self, id: LocationId, start: (u32, u32)) {
        self.list[id.0 as usize].start = start;
    }

    /// Ends a location, unless it has already ended.
    pub(super) fn close(&mut self, id: LocationId, last: Token) {
        self.list[id.0 as usize].end.get_or_insert((last.line, last.end_column));
    }

    pub(super) fn attach(&mut self, id: LocationId, comments: Comments) {
        if !comments.leading.is_empty() || !comments.trailing.is_empty() || !comments.detached.is_empty() {
            self.list[id.0 as usize].comments = Some(Box::new(comments));
        }
    }

    /// Appends `other`, with `index` at `position` in all its paths. Returns the index of the first one.
    pub(super) fn append_for_index(&mut self, other: &Locations, position: usize, index: i32) -> u32 {
        let first = self.len();
        for location in &other.list {
            let start = self.paths.len() as u32;
            self.paths.extend(other.path(location));
            self.paths[start as usize + position] = index;
            let path = start..self.paths.len() as u32;
            let comments = None;
            self.list.push(Location { path, comments, ..*location });
        }
        first
    }

    pub(super) fn path(&self, location: &Location) -> &[i32] {
        &self.paths[location.path.start as usize..location.path.end as usize]
    }

    pub(super) fn path_of(&self, id: LocationId) -> &[i32] {
        self.path(&self.list[id.0 as usize])
    }

    /// Replaces the locations of an uninterpreted option by one for the field it sets.
    pub(super) fn interpret(&mut self, written: &Range<u32>, path: &[i32]) {
        let start = self.paths.len() as u32;
        self.paths.extend(path);
        for (index, location) in
            self.list[written.start as usize..written.end as usize].iter_mut().enumerate()
        {
            if index == 0 {
                location.path = start..start + path.len() as u32;
            } else {
                location.removed = true;
            }
        }
    }

    /// Removes the locations at and below the given paths.
    pub(super) fn remove(&mut self, mut paths: Vec<Vec<i32>>) {
        paths.sort_unstable();
        // Drop paths below another one.
        paths.dedup_by(|path, before| path.starts_with(before));
        for index in 0..self.list.len() {
            let location = &self.list[index];
            let path = self.path(location);
            let candidate = paths.partition_point(|removed| removed.as_slice() <= path);
            let is_below = candidate.checked_sub(1).is_some_and(|before| path.starts_with(&paths[before]));
            if is_below {
                self.list[index].removed = true;
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Location> {
        self.list.iter().filter(|location| !location.removed)
    }
}

impl Location {
    /// Returns start and end; the end's line is omitted if it equals the start's.
    pub(super) fn span(&self) -> impl Iterator<Item = u32> {
        let (line, column) = self.start;
        let (end_line, end_column) = self.end.unwrap_or(self.start);
        [Some(line), Some(column), (end_line != line).then_some(end_line), Some(end_column)]
            .into_iter()
            .flatten()
    }

    pub(super) fn comments(&self) -> Option<&Comments> {
        self.comments.as_deref()
    }
}
