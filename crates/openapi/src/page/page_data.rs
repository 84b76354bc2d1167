//! Services and types as read by the page's script.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use thalweg_protobuf::{Cardinality, EnumType, Field, MessageType, Method, Oneof, Service};

use crate::document::{services, title};
use crate::info::Info;
use crate::options::{Behavior, Deprecated};
use crate::rules::Rules;

/// All data shown by the page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageData<'s> {
    title: String,
    description: &'s str,
    version: &'s str,
    /// Name and version of the server.
    server: &'static str,
    services: Vec<ServiceData<'s>>,
    messages: BTreeMap<&'s str, MessageData<'s>>,
    enums: BTreeMap<&'s str, EnumData<'s>>,
}

#[derive(Serialize)]
struct ServiceData<'s> {
    name: &'s str,
    file: &'s str,
    #[serde(flatten)]
    common: CommonData<'s>,
    methods: Vec<MethodData<'s>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MethodData<'s> {
    name: &'s str,
    #[serde(flatten)]
    common: CommonData<'s>,
    input: &'s str,
    output: &'s str,
    is_client_streaming: bool,
    is_server_streaming: bool,
    has_no_side_effects: bool,
    /// HTTP methods and path templates, for JSON.
    http: Vec<(String, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageData<'s> {
    #[serde(flatten)]
    common: CommonData<'s>,
    /// Whether it has its own JSON form.
    is_well_known: bool,
    fields: Vec<FieldData<'s>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a field")]
struct FieldData<'s> {
    name: &'s str,
    json_name: &'s str,
    number: u32,
    #[serde(flatten)]
    common: CommonData<'s>,
    /// A keyword of the language, or the full name of a message or enum; for a map, the type of its values.
    kind: &'s str,
    /// Type of a map's keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'s str>,
    is_repeated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    oneof: Option<&'s str>,
    is_optional: bool,
    is_required: bool,
    is_output_only: bool,
    is_input_only: bool,
    is_immutable: bool,
}

#[derive(Serialize)]
struct EnumData<'s> {
    #[serde(flatten)]
    common: CommonData<'s>,
    values: Vec<ValueData<'s>>,
}

#[derive(Serialize)]
struct ValueData<'s> {
    name: &'s str,
    number: i32,
    #[serde(flatten)]
    common: CommonData<'s>,
}

/// Properties of every declaration.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommonData<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'s str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_deprecated: bool,
}

impl<'s> PageData<'s> {
    pub(super) fn new(rules: &'s Rules, info: &'s Info) -> PageData<'s> {
        let services = services(rules);
        let mut types =
            TypeCollector { info, queue: Vec::new(), seen: HashSet::new(), enums: BTreeMap::new() };
        for method in services.iter().flat_map(|service| service.methods()) {
            types.add(method.input());
            types.add(method.output());
        }
        let mut messages = BTreeMap::new();
        while let Some(message) = types.queue.pop() {
            messages.insert(message.full_name(), types.message(message));
        }
        PageData {
            title: title(info, &services),
            description: &info.description,
            version: &info.version,
            server: concat!("Thalweg ", env!("CARGO_PKG_VERSION")),
            services: services.into_iter().map(|service| describe_service(service, rules, info)).collect(),
            messages,
            enums: types.enums,
        }
    }
}

fn describe_service<'s>(service: Service<'s>, rules: &Rules, info: &'s Info) -> ServiceData<'s> {
    let method = |method: Method<'s>| {
        let path = method.path();
        let bindings = rules.bindings().iter().filter(|binding| binding.path() == path);
        let http = bindings.map(|binding| {
            let http_method = binding.http_method().map_or("*", http::Method::as_str);
            (http_method.to_owned(), binding.template().to_string())
        });
        MethodData {
            name: method.name(),
            common: common(
                info,
                &format!("{}.{}", service.full_name(), method.name()),
                method.is_deprecated(),
            ),
            input: method.input().full_name(),
            output: method.output().full_name(),
            is_client_streaming: method.is_client_streaming(),
            is_server_streaming: method.is_server_streaming(),
            has_no_side_effects: method.has_no_side_effects(),
            http: http.collect(),
        }
    };
    ServiceData {
        name: service.full_name(),
        file: service.file().name(),
        common: common(info, service.full_name(), service.is_deprecated()),
        methods: service.methods().map(method).collect(),
    }
}

/// The types of methods, and the types nested in them.
struct TypeCollector<'s> {
    info: &'s Info,
    queue: Vec<MessageType<'s>>,
    seen: HashSet<&'s str>,
    enums: BTreeMap<&'s str, EnumData<'s>>,
}

impl<'s> TypeCollector<'s> {
    fn add(&mut self, message: MessageType<'s>) {
        if self.seen.insert(message.full_name()) {
            self.queue.push(message);
        }
    }

    fn message(&mut self, message: MessageType<'s>) -> MessageData<'s> {
        let is_well_known = message.well_known().is_some();
        let fields = message.fields().filter(|_| !is_well_known).map(|field| self.field(field)).collect();
        let common = common(self.info, message.full_name(), message.is_deprecated());
        MessageData { common, is_well_known, fields }
    }

    fn field(&mut self, field: Field<'s>) -> FieldData<'s> {
        let behavior = Behavior::of(field);
        let map = field.map_entry();
        let value = map.map_or(field, |(_, value)| value);
        if let Some(message) = value.message_type() {
            self.add(message);
        }
        if let Some(kind) = value.enum_type() {
            let info = self.info;
            self.enums.entry(kind.full_name()).or_insert_with(|| describe_enum(kind, info));
        }
        let names =
            (value.message_type().map(MessageType::full_name), value.enum_type().map(EnumType::full_name));
        let is_singular = field.cardinality() == Cardinality::Optional;
        FieldData {
            name: field.name(),
            json_name: field.json_name(),
            number: field.number(),
            common: common(self.info, &field.full_name(), field.is_deprecated()),
            kind: names.0.or(names.1).unwrap_or(value.kind().name()),
            key: map.map(|(key, _)| key.kind().name()),
            is_repeated: field.is_list(),
            oneof: field.oneof().map(Oneof::name),
            is_optional: is_singular
                && field.has_presence()
                && field.oneof().is_none()
                && !value.kind().is_message(),
            is_required: behavior.is_required,
            is_output_only: behavior.is_output_only,
            is_input_only: behavior.is_input_only,
            is_immutable: behavior.is_immutable,
        }
    }
}

fn describe_enum<'s>(kind: EnumType<'s>, info: &'s Info) -> EnumData<'s> {
    let value = |value: thalweg_protobuf::EnumValue<'s>| ValueData {
        name: value.name(),
        number: value.number(),
        common: common(info, &format!("{}.{}", kind.full_name(), value.name()), value.is_deprecated()),
    };
    EnumData {
        common: common(info, kind.full_name(), kind.is_deprecated()),
        values: kind.values().map(value).collect(),
    }
}

fn common<'s>(info: &'s Info, full_name: &str, is_deprecated: bool) -> CommonData<'s> {
    CommonData { comment: info.comments.get(full_name), is_deprecated }
}
