//! [`document`]: the OpenAPI document of services.

mod call;
mod json;
mod operation;
mod parameters;
mod path;
mod schemas;
mod text;

use std::collections::HashSet;

use thalweg_protobuf::Service;

use crate::info::Info;
use crate::options::Deprecated;
use crate::rules::{Binding, Rules};
use call::Call;
use json::{Json, Object};
use path::Path;
use schemas::Schemas;

/// Returns the OpenAPI document as JSON. The same rules give the same bytes.
///
/// # Panics
///
/// Never panics: serialising text cannot fail.
pub fn document(rules: &Rules, info: &Info) -> String {
    let services = services(rules);
    let mut schemas = Schemas::new(info);
    let mut paths = Paths::default();
    let names = OperationNames::new(&services);
    let mut ids = HashSet::new();
    let mut nth = 0;
    for (index, binding) in rules.bindings().iter().enumerate() {
        let is_additional = index > 0 && rules.bindings()[index - 1].path() == binding.path();
        nth = if is_additional { nth + 1 } else { 1 };
        let Some(method) = rules.schema().method(binding.path()) else { continue };
        let id = unique_id(&names.operation(method), nth, &mut ids);
        paths.add(&Call { info, binding, method, id }, &mut schemas);
    }
    let tags: Vec<Object> = services.iter().map(|service| tag(*service, info)).collect();
    let document = Object::new()
        .with("openapi", "3.1.0")
        .with("info", info_object(info, &services))
        .with_some("servers", servers(info))
        .with("tags", tags)
        .with("paths", paths.object())
        .with("components", Object::new().with("schemas", schemas.object()))
        .with_some("x-google-api-http", (!paths.unlisted.is_empty()).then_some(paths.unlisted));
    serde_json::to_string(&document).expect("all keys are strings")
}

/// Returns the services that have bindings, in order.
pub(crate) fn services(rules: &Rules) -> Vec<Service<'_>> {
    let mut services: Vec<Service<'_>> = Vec::new();
    for binding in rules.bindings() {
        let Some(method) = rules.schema().method(binding.path()) else { continue };
        if !services.contains(&method.service()) {
            services.push(method.service());
        }
    }
    services
}

/// Returns the title of a document or page: the given one, or the names of the services.
pub(crate) fn title(info: &Info, services: &[Service<'_>]) -> String {
    if !info.title.is_empty() {
        return info.title.clone();
    }
    let names: Vec<&str> = services.iter().map(|service| service.name()).collect();
    if names.is_empty() { "No services".to_owned() } else { names.join(", ") }
}

fn info_object(info: &Info, services: &[Service<'_>]) -> Object {
    let description = match services {
        [service] if info.description.is_empty() => info.comments.get(service.full_name()),
        _ => Some(info.description.as_str()).filter(|text| !text.is_empty()),
    };
    Object::new()
        .with("title", title(info, services))
        .with_some("description", description.map(str::to_owned))
        .with("version", if info.version.is_empty() { "0".to_owned() } else { info.version.clone() })
}

fn servers(info: &Info) -> Option<Vec<Object>> {
    let servers = info.servers.iter().map(|url| Object::new().with("url", url.clone()));
    (!info.servers.is_empty()).then(|| servers.collect())
}

fn tag(service: Service<'_>, info: &Info) -> Object {
    let mut description = info.comments.get(service.full_name()).unwrap_or_default().to_owned();
    if service.is_deprecated() {
        text::add_paragraph(&mut description, "Deprecated.");
    }
    Object::new()
        .with("name", service.full_name().to_owned())
        .with_some("description", (!description.is_empty()).then_some(description))
}

/// Names of operations, with the service's name; with its package only if the name is ambiguous.
struct OperationNames<'s> {
    ambiguous: HashSet<&'s str>,
}

impl<'s> OperationNames<'s> {
    fn new(services: &[Service<'s>]) -> Self {
        let mut seen = HashSet::new();
        let ambiguous = services.iter().map(|service| service.name()).filter(|name| !seen.insert(*name));
        OperationNames { ambiguous: ambiguous.collect() }
    }

    fn operation(&self, method: thalweg_protobuf::Method<'s>) -> String {
        let service = method.service();
        let is_ambiguous = self.ambiguous.contains(service.name());
        let service =
            if is_ambiguous { service.full_name().replace('.', "_") } else { service.name().to_owned() };
        format!("{service}_{}", method.name())
    }
}

/// Returns the name, with a numeric suffix if it is not the first or already taken.
fn unique_id(name: &str, mut nth: usize, taken: &mut HashSet<String>) -> String {
    loop {
        let id = if nth == 1 { name.to_owned() } else { format!("{name}_{nth}") };
        if taken.insert(id.clone()) {
            return id;
        }
        nth += 1;
    }
}

/// Operations by path.
#[derive(Default)]
struct Paths {
    items: Vec<PathItem>,
    /// Bindings that OpenAPI cannot express.
    unlisted: Vec<Object>,
}

struct PathItem {
    /// The path without the names of its parameters.
    shape: String,
    path: Path,
    operations: Object,
    methods: Vec<&'static str>,
}

impl Paths {
    fn add<'r>(&mut self, call: &Call<'r>, schemas: &mut Schemas<'r>) {
        let path = Path::new(call);
        let shape = path.shape();
        let http_method = call.http_method();
        let known = self.items.iter().position(|item| item.shape == shape);
        let is_free =
            |known: usize| http_method.is_some_and(|method| !self.items[known].methods.contains(&method));
        let Some(http_method) = http_method.filter(|_| known.is_none_or(is_free)) else {
            self.unlisted.push(unlisted(call.binding));
            return;
        };
        let index = known.unwrap_or_else(|| {
            self.items.push(PathItem {
                shape,
                path: path.clone(),
                operations: Object::new(),
                methods: Vec::new(),
            });
            self.items.len() - 1
        });
        let item = &mut self.items[index];
        let path = path.with_names_of(&item.path);
        item.operations.set(http_method, operation::of(call, &path, schemas));
        item.methods.push(http_method);
    }

    fn object(&mut self) -> Object {
        let items = std::mem::take(&mut self.items);
        items.into_iter().fold(Object::new(), |object, item| object.with(item.path.text(), item.operations))
    }
}

fn unlisted(binding: &Binding) -> Object {
    let method = binding.http_method().map_or("*", http::Method::as_str).to_owned();
    Object::new()
        .with("rpc", binding.path().to_owned())
        .with("method", method)
        .with("path", Json::from(binding.template().to_string()))
}
