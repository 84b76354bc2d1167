//! Names in generated code.

use std::fmt::Write;

/// Methods of generated clients; a service method with one of these names gets an underscore.
const CLIENT_METHODS: [&str; 12] = [
    "clone",
    "new",
    "connect",
    "with_interceptor",
    "with_options",
    "max_decoding_message_size",
    "max_encoding_message_size",
    "send_compressed",
    "compression_threshold",
    "accept_compressed",
    "wait_for_ready",
    "timeout",
];

/// Names that the server module uses unqualified, which a trait of the same name would shadow.
const SERVER_MODULE_NAMES: [&str; 7] = ["Clone", "Fn", "Into", "Result", "Send", "Sync", "T"];

/// Names in the code of one service.
pub(crate) struct ServiceNames {
    /// `Greeter`
    pub(crate) trait_name: String,
    /// `GreeterClient`
    pub(crate) client: String,
    /// `greeter_client`
    pub(crate) client_module: String,
    /// `GreeterServer`
    pub(crate) server: String,
    /// `greeter_server`
    pub(crate) server_module: String,
    /// `helloworld.Greeter`, or `Greeter` without a package
    pub(crate) full: String,
}

impl ServiceNames {
    pub(crate) fn of(service: &prost_build::Service) -> Self {
        // prost gives the name in camel case, `Self` as `Self_`.
        let camel = service.name.trim_end_matches('_');
        let snake = snake_case(camel);
        let mut trait_name = service.name.clone();
        if SERVER_MODULE_NAMES.contains(&camel) {
            trait_name.push('_');
        }
        let full = match service.package.as_str() {
            "" => service.proto_name.clone(),
            package => format!("{package}.{}", service.proto_name),
        };
        ServiceNames {
            client: format!("{camel}Client"),
            client_module: format!("{snake}_client"),
            server: format!("{camel}Server"),
            server_module: format!("{snake}_server"),
            trait_name,
            full,
        }
    }
}

/// Returns the name of a method in the client: `say_hello`, `r#type`, `new_`.
pub(crate) fn client_method(method: &prost_build::Method) -> String {
    client_name(&method.name)
}

/// Returns the name of a method in the client, from its snake-case name.
pub(crate) fn client_name(snake: &str) -> String {
    if CLIENT_METHODS.contains(&snake) { format!("{snake}_") } else { snake.to_owned() }
}

/// Returns the name of a method's static: `SAY_HELLO`.
pub(crate) fn method_static(method: &prost_build::Method) -> String {
    method.name.trim_start_matches("r#").to_uppercase()
}

/// Returns the associated type for a method's response stream: `LotsOfRepliesStream`. Names that are not in camel case
/// are converted.
pub(crate) fn response_stream(proto_name: &str) -> String {
    let mut name = String::new();
    for word in proto_name.split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name + "Stream"
}

/// Returns the path of a message type as written one module below its package.
///
/// prost writes paths relative to the package's module. Paths that start at a crate, and the Rust types of well-known
/// ones (`()` for `Empty`), are the same everywhere.
pub(crate) fn message_path(path: &str) -> String {
    let is_absolute = path.starts_with("::") || path.starts_with("crate::");
    let is_primitive =
        matches!(path, "()" | "bool" | "f32" | "f64" | "i32" | "i64" | "u32" | "u64" | "String");
    if is_absolute || is_primitive { path.to_owned() } else { format!("super::{path}") }
}

/// Returns whether a user's path (`.`, `.shop.v1`, `v1.Orders`, `Orders.Get`) matches a service or method. As in
/// prost's paths, a leading dot anchors it at the root; otherwise it matches the end.
pub(crate) fn path_matches(pattern: &str, full: &str) -> bool {
    let full: Vec<&str> = full.split('.').collect();
    match pattern.strip_prefix('.') {
        Some("") => true,
        Some(anchored) => full.starts_with(&anchored.split('.').collect::<Vec<_>>()),
        None => full.ends_with(&pattern.split('.').collect::<Vec<_>>()),
    }
}

/// Converts `HttpEcho` to `http_echo`. prost's names are camel case, so each capital starts a word.
fn snake_case(camel: &str) -> String {
    let mut snake = String::new();
    for (index, letter) in camel.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            snake.push('_');
        }
        let _ = write!(snake, "{}", letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(package: &str, name: &str) -> ServiceNames {
        ServiceNames::of(&prost_build::Service {
            name: name.to_owned(),
            proto_name: name.to_owned(),
            package: package.to_owned(),
            comments: prost_build::Comments::default(),
            methods: Vec::new(),
            options: prost_types::ServiceOptions::default(),
        })
    }

    #[test]
    fn message_path_is_relative_to_submodule() {
        let check = |path, expected| assert_eq!(message_path(path), expected);
        check("HelloRequest", "super::HelloRequest");
        check("super::common::Page", "super::super::common::Page");
        check("r#type::Inner", "super::r#type::Inner");
        check("()", "()");
        check("::prost_types::Timestamp", "::prost_types::Timestamp");
        check("crate::model::Person", "crate::model::Person");
    }

    #[test]
    fn service_names_are_derived() {
        let check = |package, name, full, trait_name, client_module| {
            let names = service(package, name);
            assert_eq!(
                (&*names.full, &*names.trait_name, &*names.client_module),
                (full, trait_name, client_module)
            );
        };
        check("helloworld", "Greeter", "helloworld.Greeter", "Greeter", "greeter_client");
        check("", "Greeter", "Greeter", "Greeter", "greeter_client");
        check("a.b", "HttpEcho", "a.b.HttpEcho", "HttpEcho", "http_echo_client");
        check("a", "Result", "a.Result", "Result_", "result_client");
        check("a", "Self_", "a.Self_", "Self_", "self_client");
    }

    #[test]
    fn path_matches_at_root_or_end() {
        let check = |pattern, expected| {
            assert_eq!(path_matches(pattern, "shop.v1.Orders"), expected, "{pattern}");
        };
        check(".", true);
        check(".shop", true);
        check(".shop.v1.Orders", true);
        check("Orders", true);
        check("v1.Orders", true);
        check("shop.v1.Orders", true);
        check(".v1", false);
        check(".shop.v1.Orders.Get", false);
        check("shop", false);
        check("Order", false);
    }
}
