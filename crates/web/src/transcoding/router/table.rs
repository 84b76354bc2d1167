//! Templates as a tree with one level per segment, up to `**`.

use http::Method;
use thalweg_openapi::rules::{Segment, Template};

/// A tree for paths without a verb, and one per verb. Routes are indices.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    plain: Node,
    /// Sorted by verb.
    verbs: Vec<(Box<str>, Node)>,
}

/// A node of the tree, reached by the first segments of a path.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Routes of paths that end here.
    routes: Routes,
    /// Sorted by text.
    literals: Vec<(Box<str>, Node)>,
    /// Subtree of `*`.
    any: Option<Box<Node>>,
    /// Routes of `**`, those with more literals first.
    rests: Vec<Rest>,
}

/// A `**` and the literals after it.
#[derive(Clone, Debug)]
struct Rest {
    literals: Vec<Box<str>>,
    routes: Routes,
}

/// The HTTP methods of a path. `None` matches all and comes last.
#[derive(Clone, Debug, Default)]
struct Routes(Vec<(Option<Method>, usize)>);

impl Table {
    pub(super) fn add(&mut self, index: usize, method: Option<&Method>, template: &Template) {
        let mut node = match template.verb() {
            None => &mut self.plain,
            Some(verb) => child(&mut self.verbs, verb),
        };
        let mut segments = template.segments().iter();
        while let Some(segment) = segments.next() {
            node = match segment {
                Segment::Literal(text) => child(&mut node.literals, text),
                Segment::Any => node.any.get_or_insert_default(),
                Segment::Rest => {
                    // The grammar allows only literals there.
                    let literals = segments.filter_map(|segment| match segment {
                        Segment::Literal(text) => Some(text.clone()),
                        Segment::Any | Segment::Rest => None,
                    });
                    node.rest(literals.collect()).add(index, method);
                    return;
                }
            };
        }
        node.routes.add(index, method);
    }

    /// Returns the route, and the path without the route's verb.
    pub(super) fn find<'t, 'p>(
        &'t self,
        search: &mut Search<'t, '_>,
        path: &'p str,
    ) -> Option<(usize, &'p str)> {
        let inside = path.strip_prefix('/')?;
        if let Some((front, verb)) = split_verb(inside)
            && let Ok(at) = self.verbs.binary_search_by(|(text, _)| (**text).cmp(verb))
            && let Some(index) = search.node(&self.verbs[at].1, segments(front))
        {
            return Some((index, &path[..=front.len()]));
        }
        search.node(&self.plain, segments(inside)).map(|index| (index, path))
    }
}

/// Splits off the part after the last colon of the last segment.
fn split_verb(path: &str) -> Option<(&str, &str)> {
    path.rsplit_once(':').filter(|(_, verb)| !verb.contains('/'))
}

/// Returns the segments of a path without its first slash, or `None` if there are none.
fn segments(path: &str) -> Option<&str> {
    (!path.is_empty()).then_some(path)
}

/// Returns the child with this name, and creates it if necessary.
fn child<'n>(children: &'n mut Vec<(Box<str>, Node)>, name: &str) -> &'n mut Node {
    let at = match children.binary_search_by(|(text, _)| (**text).cmp(name)) {
        Ok(at) => at,
        Err(at) => {
            children.insert(at, (name.into(), Node::default()));
            at
        }
    };
    &mut children[at].1
}

impl Node {
    fn rest(&mut self, literals: Vec<Box<str>>) -> &mut Routes {
        let known = self.rests.iter().position(|rest| rest.literals == literals);
        let at = known.unwrap_or_else(|| {
            let at = self.rests.partition_point(|rest| rest.literals.len() >= literals.len());
            self.rests.insert(at, Rest { literals, routes: Routes::default() });
            at
        });
        &mut self.rests[at].routes
    }
}

impl Routes {
    fn add(&mut self, index: usize, method: Option<&Method>) {
        let at = match method {
            Some(_) => self.0.partition_point(|(method, _)| method.is_some()),
            None => self.0.len(),
        };
        self.0.insert(at, (method.cloned(), index));
    }
}

/// A search in the tree. Its cost is bounded by the tree and one pass over the path: each node is reached by one prefix
/// of the path only.
pub(super) struct Search<'t, 'm> {
    method: &'m Method,
    /// Routes of the path for other HTTP methods.
    others: Vec<&'t Routes>,
}

impl<'t, 'm> Search<'t, 'm> {
    pub(super) fn new(method: &'m Method) -> Self {
        Search { method, others: Vec::new() }
    }

    /// Returns the HTTP methods of the path, if that of the request did not match.
    pub(super) fn allowed(&self) -> Vec<&'t Method> {
        let mut allowed = Vec::new();
        for method in
            self.others.iter().flat_map(|routes| &routes.0).filter_map(|(method, _)| method.as_ref())
        {
            if !allowed.contains(&method) {
                allowed.push(method);
            }
        }
        allowed
    }

    /// Returns the route of the remaining segments.
    fn node(&mut self, node: &'t Node, path: Option<&str>) -> Option<usize> {
        let Some(path) = path else {
            return self.routes(&node.routes).or_else(|| self.rests(node, None));
        };
        let (segment, rest) = match path.split_once('/') {
            Some((segment, rest)) => (segment, Some(rest)),
            None => (path, None),
        };
        if let Ok(at) = node.literals.binary_search_by(|(text, _)| (**text).cmp(segment))
            && let Some(index) = self.node(&node.literals[at].1, rest)
        {
            return Some(index);
        }
        if !segment.is_empty()
            && let Some(any) = &node.any
            && let Some(index) = self.node(any, rest)
        {
            return Some(index);
        }
        self.rests(node, Some(path))
    }

    fn rests(&mut self, node: &'t Node, path: Option<&str>) -> Option<usize> {
        let mut matching = node.rests.iter().filter(|rest| ends_with(path, &rest.literals));
        matching.find_map(|rest| self.routes(&rest.routes))
    }

    fn routes(&mut self, routes: &'t Routes) -> Option<usize> {
        let matches_method =
            |method: &Option<Method>| method.as_ref().is_none_or(|method| method == self.method);
        let found = routes.0.iter().find(|(method, _)| matches_method(method));
        if found.is_none() && !routes.0.is_empty() {
            self.others.push(routes);
        }
        found.map(|(_, index)| *index)
    }
}

/// Returns whether `path` ends with these segments.
fn ends_with(path: Option<&str>, literals: &[Box<str>]) -> bool {
    let mut path = path;
    literals.iter().rev().all(|literal| {
        let (front, last) = match path.map(|path| (path, path.rsplit_once('/'))) {
            None => return false,
            Some((_, Some((front, last)))) => (Some(front), last),
            Some((last, None)) => (None, last),
        };
        path = front;
        *last == **literal
    })
}
