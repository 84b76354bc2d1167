//! Targets such as `kubernetes:///orders.shop:grpc`.

use core::num::NonZeroU16;

use crate::error::KubernetesError;

/// A parsed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) service: String,
    /// `None` for the pod's own.
    pub(crate) namespace: Option<String>,
    pub(crate) port: Port,
}

/// The port of the pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// The only port of the service.
    Only,
    Number(u16),
    /// The name of a port of the service. Its number may differ from pod to pod.
    Name(String),
}

/// Maximum length of a service's or namespace's name (a label of RFC 1035).
const NAME_LEN_MAX: usize = 63;
/// Maximum length of a port's name (RFC 6335 §5.1).
const PORT_NAME_LEN_MAX: usize = 15;

impl Target {
    /// Parses `kubernetes:///SERVICE[.NAMESPACE[.svc[.DOMAIN]]][:PORT]`, with or without the scheme.
    pub(crate) fn parse(text: &str) -> Result<Self, KubernetesError> {
        parse(text).map_err(|reason| KubernetesError::Target { target: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Target, &'static str> {
    let rest = match text.strip_prefix("kubernetes:") {
        None if text.contains("://") => return Err("the scheme is not `kubernetes`"),
        None => text,
        Some(rest) => match rest.strip_prefix("//") {
            None => rest,
            Some(rest) => {
                rest.strip_prefix('/').ok_or("a host follows the scheme; it needs three slashes")?
            }
        },
    };
    let (name, port) = match rest.split_once(':') {
        None => (rest, Port::Only),
        Some((name, port)) => (name, parse_port(port)?),
    };
    let mut labels = name.split('.');
    let service = labels.next().unwrap_or_default();
    let namespace = labels.next();
    if !is_label(service, NAME_LEN_MAX) {
        return Err("the name of the service is invalid");
    }
    if namespace.is_some_and(|namespace| !is_label(namespace, NAME_LEN_MAX)) {
        return Err("the namespace is invalid");
    }
    if labels.next().is_some_and(|label| label != "svc") {
        return Err("`svc` must follow the namespace");
    }
    Ok(Target { service: service.to_owned(), namespace: namespace.map(str::to_owned), port })
}

fn parse_port(text: &str) -> Result<Port, &'static str> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse::<NonZeroU16>().map_err(|_| "the port is not in 1..=65535")?;
        return Ok(Port::Number(number.get()));
    }
    if is_label(text, PORT_NAME_LEN_MAX) {
        Ok(Port::Name(text.to_owned()))
    } else {
        Err("the port is invalid")
    }
}

/// Returns whether `text` consists of lower-case letters, digits and inner hyphens.
pub(crate) fn is_label(text: &str, len_max: usize) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= len_max
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether `text` can be the name of a namespace, and so part of a path.
pub(crate) fn is_namespace(text: &str) -> bool {
    is_label(text, NAME_LEN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let check = |text: &str, expected: Result<(&str, Option<&str>, Port), &str>| {
            let found = parse(text);
            let found = found
                .as_ref()
                .map(|target| (target.service.as_str(), target.namespace.as_deref(), target.port.clone()));
            assert_eq!(found.map_err(|reason| *reason), expected, "{text}");
        };
        let name = |name: &str| Port::Name(name.to_owned());
        check("kubernetes:///orders.shop:50051", Ok(("orders", Some("shop"), Port::Number(50051))));
        check("kubernetes:orders.shop:grpc", Ok(("orders", Some("shop"), name("grpc"))));
        check("orders.shop.svc.cluster.local:grpc", Ok(("orders", Some("shop"), name("grpc"))));
        check("orders.shop.svc", Ok(("orders", Some("shop"), Port::Only)));
        check("orders:h2c-1", Ok(("orders", None, name("h2c-1"))));
        check("orders", Ok(("orders", None, Port::Only)));
        check("kubernetes://shop/orders", Err("a host follows the scheme; it needs three slashes"));
        check("dns:///orders.shop", Err("the scheme is not `kubernetes`"));
        check("", Err("the name of the service is invalid"));
        check("-orders.shop", Err("the name of the service is invalid"));
        check("orders/..", Err("the name of the service is invalid"));
        check("Orders", Err("the name of the service is invalid"));
        check(&"o".repeat(64), Err("the name of the service is invalid"));
        check("orders.", Err("the namespace is invalid"));
        check("orders.shop/x", Err("the namespace is invalid"));
        check("orders.shop.cluster.local", Err("`svc` must follow the namespace"));
        check("orders:0", Err("the port is not in 1..=65535"));
        check("orders:65536", Err("the port is not in 1..=65535"));
        check("orders:", Err("the port is not in 1..=65535"));
        check("orders:http_2", Err("the port is invalid"));
        check("orders:a-port-of-16-chr", Err("the port is invalid"));
    }
}
