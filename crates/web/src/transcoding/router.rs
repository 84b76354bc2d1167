//! Routing of an HTTP method and a path to a binding.

mod table;

use std::borrow::Cow;
use std::slice;

use http::Method;
use thalweg_openapi::rules::{Binding, FieldPath, Rules, Segment, Variable};

use super::percent::{self, PercentError, UriComponent};
use table::{Search, Table};

/// Routes requests to the bindings of [`Rules`].
#[derive(Clone, Debug)]
pub struct Router {
    rules: Rules,
    table: Table,
}

/// Result of routing a request.
#[derive(Clone, Debug)]
pub enum Lookup<'r, 'p> {
    /// A binding.
    Route(Route<'r, 'p>),
    /// The path supports other HTTP methods only: 405, with these in the header `Allow`.
    MethodNotAllowed {
        /// Without duplicates.
        allowed: Vec<&'r Method>,
    },
    /// No binding: 404.
    NotFound,
}

/// A binding, and a path that it matches.
#[derive(Clone, Copy, Debug)]
pub struct Route<'r, 'p> {
    binding: &'r Binding,
    index: usize,
    /// Without the verb.
    path: &'p str,
}

impl Router {
    /// Builds a table of all bindings.
    pub fn new(rules: Rules) -> Router {
        let mut table = Table::default();
        for (index, binding) in rules.bindings().iter().enumerate() {
            table.add(index, binding.http_method(), binding.template());
        }
        Router { rules, table }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Routes a request; `path` is undecoded and without the query.
    pub fn find<'p>(&self, method: &Method, path: &'p str) -> Lookup<'_, 'p> {
        let mut search = Search::new(method);
        let Some((index, path)) = self.table.find(&mut search, path) else {
            let allowed = search.allowed();
            if allowed.is_empty() {
                return Lookup::NotFound;
            }
            return Lookup::MethodNotAllowed { allowed };
        };
        Lookup::Route(Route { binding: &self.rules.bindings()[index], index, path })
    }

    /// Restores a route from its key and the path of the request.
    pub(crate) fn route<'p>(&self, key: RouteKey, path: &'p str) -> Route<'_, 'p> {
        let RouteKey { index, path_len } = key;
        Route { binding: &self.rules.bindings()[index], index, path: &path[..path_len] }
    }
}

/// A [`Route`] without references to its binding and path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteKey {
    /// Index of the binding.
    pub(crate) index: usize,
    /// Length without the verb.
    path_len: usize,
}

impl<'r, 'p> Route<'r, 'p> {
    /// Returns the binding.
    pub fn binding(&self) -> &'r Binding {
        self.binding
    }

    pub(crate) fn key(&self) -> RouteKey {
        RouteKey { index: self.index, path_len: self.path.len() }
    }

    /// Returns the variables with their parts of the path.
    pub fn variables(&self) -> Variables<'r, 'p> {
        let segments = self.binding.template().segments();
        // `**` matches the segments that remain after each other template segment has one.
        let rest_at = segments.iter().position(|segment| *segment == Segment::Rest);
        let rest_len = || {
            let len = if self.path == "/" { 0 } else { self.path.matches('/').count() };
            (len + 1).saturating_sub(segments.len())
        };
        Variables {
            templates: self.binding.template().variables().iter(),
            field_paths: self.binding.variables().iter(),
            path: self.path,
            rest_at: rest_at.unwrap_or(segments.len()),
            rest_len: rest_at.map_or(0, |_| rest_len()),
        }
    }
}

/// The variables of a route, each with its field and its decoded value.
#[derive(Clone, Debug)]
pub struct Variables<'r, 'p> {
    templates: slice::Iter<'r, Variable>,
    field_paths: slice::Iter<'r, FieldPath>,
    path: &'p str,
    /// Index of `**` in the template's segments, or their number if there is none.
    rest_at: usize,
    /// Number of path segments that `**` matches.
    rest_len: usize,
}

impl<'r, 'p> Iterator for Variables<'r, 'p> {
    type Item = (&'r Variable, &'r FieldPath, Result<Cow<'p, str>, PercentError>);

    fn next(&mut self) -> Option<Self::Item> {
        let (variable, field_path) = (self.templates.next()?, self.field_paths.next()?);
        let in_path =
            |segment: usize| if segment <= self.rest_at { segment } else { segment - 1 + self.rest_len };
        let text = segments_of(self.path, in_path(variable.segments.start), in_path(variable.segments.end));
        let component = if variable.is_single { UriComponent::Segment } else { UriComponent::Segments };
        Some((variable, field_path, percent::decode(text, component)))
    }
}

/// Returns the segments `start..end` of `path`, with the slashes between them.
fn segments_of(path: &str, start: usize, end: usize) -> &str {
    if start >= end {
        return "";
    }
    // Segment 0 follows the first slash.
    let mut slashes = path.match_indices('/').map(|(at, _)| at);
    let from = slashes.nth(start).map_or(path.len(), |slash| slash + 1);
    let to = slashes.nth(end - start - 1).unwrap_or(path.len());
    &path[from..to]
}
