//! The EndpointSlices of a service (`discovery.k8s.io/v1`), and the servers that they list.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use thalweg_engine::{Address, Endpoint, Locality};

use crate::target::Port;

/// The response to a list.
#[derive(Debug, Deserialize)]
pub(crate) struct SliceList {
    pub(crate) metadata: Metadata,
    /// Go writes `null` for empty lists.
    pub(crate) items: Option<Vec<EndpointSlice>>,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(crate) enum WatchEvent {
    Added(EndpointSlice),
    Modified(EndpointSlice),
    Deleted(EndpointSlice),
    /// Nothing has changed up to this version.
    Bookmark(Bookmark),
    /// The end of the watch.
    Error(ApiStatus),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Bookmark {
    metadata: Metadata,
}

/// A `Status` of the API: why a request failed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApiStatus {
    pub(crate) code: u16,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    name: String,
    pub(crate) resource_version: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointSlice {
    metadata: Metadata,
    /// Absent in the objects of a watch that has just the metadata.
    endpoints: Option<Vec<SliceEndpoint>>,
    ports: Option<Vec<SlicePort>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SliceEndpoint {
    /// Addresses of one family, which lead to the same server.
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Conditions,
    target_ref: Option<ObjectReference>,
    zone: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Conditions {
    ready: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct ObjectReference {
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlicePort {
    name: Option<String>,
    port: Option<u16>,
    protocol: Option<String>,
}

/// The slices of a service. The control plane spreads the pods over several, one address family in each.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    by_name: BTreeMap<String, EndpointSlice>,
}

/// The servers of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Reason why there are none.
    pub(crate) note: Option<String>,
}

/// A server, as far as the slices have been read.
#[derive(Default)]
struct Server<'a> {
    addresses: BTreeSet<SocketAddr>,
    zone: &'a str,
    pod: Option<&'a str>,
}

impl WatchEvent {
    /// Returns the version of the collection after the event; empty for an error.
    pub(crate) fn resource_version(&self) -> &str {
        match self {
            Self::Added(slice) | Self::Modified(slice) | Self::Deleted(slice) => {
                &slice.metadata.resource_version
            }
            Self::Bookmark(bookmark) => &bookmark.metadata.resource_version,
            Self::Error(_) => "",
        }
    }
}

impl Slices {
    /// Replaces all slices.
    pub(crate) fn replace(&mut self, slices: Vec<EndpointSlice>) {
        self.by_name = slices.into_iter().map(|slice| (slice.metadata.name.clone(), slice)).collect();
    }

    /// Applies an event of a watch.
    pub(crate) fn apply(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => {
                self.by_name.insert(slice.metadata.name.clone(), slice);
            }
            WatchEvent::Deleted(slice) => {
                self.by_name.remove(&slice.metadata.name);
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }

    /// Returns the servers, sorted by address. The addresses of a pod in several slices are those of one server. While
    /// the control plane moves a pod to another slice, it is in both.
    pub(crate) fn listing(&self, port: &Port) -> Listing {
        let mut servers: HashMap<&str, Server<'_>> = HashMap::new();
        for slice in self.by_name.values() {
            let Some(number) = slice.port_number(port) else { continue };
            for endpoint in slice.endpoints().iter().filter(|endpoint| endpoint.is_ready()) {
                let addresses = endpoint.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok());
                let mut addresses = addresses.map(|ip| SocketAddr::new(ip, number)).peekable();
                if addresses.peek().is_none() {
                    continue;
                }
                let server = servers.entry(endpoint.identity()).or_default();
                server.addresses.extend(addresses);
                server.zone = endpoint.zone.as_deref().unwrap_or_default();
                server.pod = endpoint.pod_name();
            }
        }
        let servers: BTreeMap<_, _> =
            servers.into_values().map(|server| (server.addresses, (server.zone, server.pod))).collect();
        let endpoint = |(addresses, (zone, pod)): (BTreeSet<SocketAddr>, (&str, Option<&str>))| {
            let endpoint = Endpoint::with_addresses(addresses.into_iter().map(Address::Tcp).collect());
            let endpoint = endpoint.locality(Locality::new("", zone, ""));
            match pod {
                Some(pod) => endpoint.hash_key(pod),
                None => endpoint,
            }
        };
        let endpoints: Vec<_> = servers.into_iter().map(endpoint).collect();
        let note = endpoints.is_empty().then(|| self.why_none(port));
        Listing { endpoints, note }
    }

    /// Returns the reason why no server is listed.
    fn why_none(&self, port: &Port) -> String {
        if self.by_name.is_empty() {
            return "it has no EndpointSlices; check its name, namespace and selector".to_owned();
        }
        let (mut with_port, mut without) = (0, 0);
        for slice in self.by_name.values() {
            let count = if slice.port_number(port).is_some() { &mut with_port } else { &mut without };
            *count += slice.endpoints().len();
        }
        match (with_port, without) {
            (0, 0) => "it has no pods".to_owned(),
            (0, _) => self.why_no_port(port),
            (1, _) => "its pod is not ready".to_owned(),
            (pods, _) => format!("none of its {pods} pods is ready"),
        }
    }

    fn why_no_port(&self, port: &Port) -> String {
        let ports = self.by_name.values().flat_map(EndpointSlice::tcp_ports);
        let names: BTreeSet<String> = ports.map(|(name, number)| format!("`{name}` ({number})")).collect();
        let names = Vec::from_iter(names).join(", ");
        match port {
            Port::Name(name) if names.is_empty() => format!("it has no port `{name}`, and no other"),
            Port::Name(name) => format!("it has no port `{name}`; its ports are {names}"),
            _ if names.is_empty() => "it has no port; add the pods' port to the target".to_owned(),
            _ => format!("it has several ports; add one to the target: {names}"),
        }
    }
}

impl EndpointSlice {
    fn endpoints(&self) -> &[SliceEndpoint] {
        self.endpoints.as_deref().unwrap_or_default()
    }

    /// Returns the names and numbers of the TCP ports.
    fn tcp_ports(&self) -> impl Iterator<Item = (&str, u16)> {
        let ports = self.ports.as_deref().unwrap_or_default().iter();
        let ports = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        ports.filter_map(|port| Some((port.name.as_deref().unwrap_or_default(), port.port?)))
    }

    fn port_number(&self, port: &Port) -> Option<u16> {
        match port {
            Port::Number(number) => Some(*number),
            Port::Name(name) => self.tcp_ports().find(|(other, _)| other == name).map(|(_, number)| number),
            Port::Only => {
                let mut ports = self.tcp_ports().map(|(_, number)| number);
                ports.next().filter(|_| ports.next().is_none())
            }
        }
    }
}

impl SliceEndpoint {
    /// Returns whether it accepts new connections. Unknown readiness counts as ready, as the API demands. Terminating
    /// pods are ready if the service sets `publishNotReadyAddresses`.
    fn is_ready(&self) -> bool {
        self.conditions.ready.unwrap_or(true) && !self.conditions.terminating.unwrap_or(false)
    }

    /// Returns what its entries in several slices have in common.
    fn identity(&self) -> &str {
        let uid = self.target_ref.as_ref().and_then(|target| target.uid.as_deref());
        uid.or(self.addresses.first().map(String::as_str)).unwrap_or_default()
    }

    fn pod_name(&self) -> Option<&str> {
        let target = self.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"))?;
        target.name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(items: &str) -> Slices {
        let mut slices = Slices::default();
        slices.replace(serde_json::from_str(&format!("[{items}]")).expect("slices"));
        slices
    }

    /// Checks the addresses of each server.
    fn check(slices: &Slices, port: &Port, expected: &[&str]) {
        let listing = slices.listing(port);
        let name = |endpoint: &Endpoint| {
            let addresses = endpoint.addresses.iter().map(ToString::to_string);
            addresses.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listing.endpoints.iter().map(name).collect::<Vec<_>>(), expected, "{slices:?}");
        assert_eq!(listing.note.is_some(), expected.is_empty(), "{listing:?}");
    }

    fn check_note(slices: &Slices, port: &Port, expected: &str) {
        assert_eq!(slices.listing(port).note.as_deref(), Some(expected), "{slices:?}");
    }

    fn slice(name: &str, endpoints: &str, ports: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "{name}", "resourceVersion": "1"}}, "endpoints": [{endpoints}],
                "ports": [{ports}]}}"#
        )
    }

    const GRPC: &str = r#"{"name": "grpc", "port": 50051, "protocol": "TCP"}"#;
    const ADMIN: &str = r#"{"name": "admin", "port": 9000}, {"name": "udp", "port": 53, "protocol": "UDP"}"#;

    fn named(name: &str) -> Port {
        Port::Name(name.to_owned())
    }

    #[test]
    fn ready_endpoints_are_listed() {
        let endpoints = r#"
            {"addresses": ["10.0.0.3"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.1"], "conditions": {"ready": null}},
            {"addresses": ["10.0.0.2"]},
            {"addresses": ["10.0.0.4"], "conditions": {"ready": false, "serving": true}},
            {"addresses": ["10.0.0.5"], "conditions": {"ready": true, "terminating": true}},
            {"addresses": ["pod.example"]}"#;
        let expected = &["10.0.0.1:50051", "10.0.0.2:50051", "10.0.0.3:50051"];
        check(&slices(&slice("a", endpoints, GRPC)), &named("grpc"), expected);
    }

    #[test]
    fn ports_are_found_by_name_or_number_or_are_the_only_one() {
        let endpoint = r#"{"addresses": ["10.0.0.1"]}"#;
        let two = slices(&slice("a", endpoint, &format!("{GRPC}, {ADMIN}")));
        check(&two, &named("grpc"), &["10.0.0.1:50051"]);
        check(&two, &named("admin"), &["10.0.0.1:9000"]);
        check(&two, &Port::Number(7), &["10.0.0.1:7"]);
        check_note(&two, &named("udp"), "it has no port `udp`; its ports are `admin` (9000), `grpc` (50051)");
        let several = "it has several ports; add one to the target: `admin` (9000), `grpc` (50051)";
        check_note(&two, &Port::Only, several);
        check(&slices(&slice("a", endpoint, ADMIN)), &Port::Only, &["10.0.0.1:9000"]);
        let none = slices(&slice("a", endpoint, ""));
        check(&none, &Port::Number(7), &["10.0.0.1:7"]);
        check_note(&none, &Port::Only, "it has no port; add the pods' port to the target");
        check_note(&none, &named("grpc"), "it has no port `grpc`, and no other");
    }

    #[test]
    fn a_named_port_differs_between_slices() {
        let old = slice("a", r#"{"addresses": ["10.0.0.1"]}"#, r#"{"name": "grpc", "port": 50051}"#);
        let new = slice("b", r#"{"addresses": ["10.0.0.2"]}"#, r#"{"name": "grpc", "port": 50052}"#);
        check(&slices(&format!("{old}, {new}")), &named("grpc"), &["10.0.0.1:50051", "10.0.0.2:50052"]);
    }

    #[test]
    fn a_pod_in_several_slices_is_one_server() {
        let pod = |address: &str, uid: &str| {
            format!(
                r#"{{"addresses": ["{address}"], "targetRef": {{"kind": "Pod", "name": "p", "uid": "{uid}"}}}}"#
            )
        };
        let v6 = slice("a", &[pod("fd00::1", "u1"), pod("fd00::2", "u2")].join(","), GRPC);
        let v4 = slice("b", &[pod("10.0.0.1", "u1"), pod("10.0.0.2", "u2")].join(","), GRPC);
        // The control plane moves pods from slice to slice.
        let moved = slice("c", &pod("10.0.0.2", "u2"), GRPC);
        let not_ready = r#"{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}"#;
        let stale = slice("d", not_ready, GRPC);
        let both = slices(&[v6, v4, moved, stale].join(","));
        check(&both, &named("grpc"), &["10.0.0.1:50051 [fd00::1]:50051", "10.0.0.2:50051 [fd00::2]:50051"]);
        let same = r#"{"addresses": ["10.0.0.1"]}"#;
        let twice = slices(&[slice("a", same, GRPC), slice("b", same, GRPC)].join(","));
        check(&twice, &named("grpc"), &["10.0.0.1:50051"]);
    }

    #[test]
    fn zones_and_names_of_pods_are_passed_on() {
        let endpoint = r#"{"addresses": ["10.0.0.1"], "zone": "europe-west1-b", "nodeName": "n",
            "targetRef": {"kind": "Pod", "name": "orders-0", "uid": "u"}}"#;
        let listing = slices(&slice("a", endpoint, GRPC)).listing(&Port::Only);
        let [found] = &listing.endpoints[..] else { panic!("one endpoint: {listing:?}") };
        assert_eq!(found.locality, Locality::new("", "europe-west1-b", ""));
        assert_eq!(found.hash_key.as_deref(), Some("orders-0"));
    }

    #[test]
    fn notes_say_why_there_is_no_server() {
        let check = |items: &str, expected: &str| check_note(&slices(items), &Port::Only, expected);
        check("", "it has no EndpointSlices; check its name, namespace and selector");
        check(&slice("a", "", GRPC), "it has no pods");
        check(r#"{"metadata": {"name": "a"}, "endpoints": null, "ports": null}"#, "it has no pods");
        let not_ready = r#"{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}"#;
        check(&slice("a", not_ready, GRPC), "its pod is not ready");
        check(&slice("a", &[not_ready, not_ready].join(","), GRPC), "none of its 2 pods is ready");
    }

    #[test]
    fn events_change_slices() {
        let mut slices = slices(&slice("a", r#"{"addresses": ["10.0.0.1"]}"#, GRPC));
        let mut apply = |kind: &str, name: &str, address: &str, expected: &[&str]| {
            let object = slice(name, &format!(r#"{{"addresses": ["{address}"]}}"#), GRPC);
            let event = format!(r#"{{"type": "{kind}", "object": {object}}}"#);
            let event: WatchEvent = serde_json::from_str(&event).expect("an event");
            assert_eq!(event.resource_version(), "1");
            slices.apply(event);
            check(&slices, &Port::Only, expected);
        };
        apply("ADDED", "b", "10.0.0.2", &["10.0.0.1:50051", "10.0.0.2:50051"]);
        apply("MODIFIED", "a", "10.0.0.3", &["10.0.0.2:50051", "10.0.0.3:50051"]);
        apply("DELETED", "b", "10.0.0.2", &["10.0.0.3:50051"]);
        let bookmark = r#"{"object": {"metadata": {"resourceVersion": "7"}}, "type": "BOOKMARK"}"#;
        let bookmark: WatchEvent = serde_json::from_str(bookmark).expect("an event");
        assert_eq!(bookmark.resource_version(), "7");
        let error = r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}"#;
        let error: WatchEvent = serde_json::from_str(error).expect("an event");
        assert!(matches!(error, WatchEvent::Error(ApiStatus { code: 410, message }) if message == "too old"));
    }
}
