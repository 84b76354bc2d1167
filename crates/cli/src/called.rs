//! A method that is named on the command line, by its descriptor.

use thalweg_dynamic::{Catalogue, MethodName, near};
use thalweg_protobuf::json::{self, ParseOptions};
use thalweg_protobuf::{Schema, text_format};

use crate::failure::Failure;
use crate::message_format::MessageFormat;

/// What is known of a method.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) schema: Schema,
    pub(crate) path: String,
    pub(crate) request_type: String,
    pub(crate) response_type: String,
    pub(crate) is_client_streaming: bool,
    pub(crate) is_server_streaming: bool,
}

impl Called {
    /// What templates may name of it, by ghz's names.
    pub(crate) fn constants(&self) -> Vec<(&'static str, String)> {
        let last = |name: &str, separator| name.rsplit(separator).next().unwrap_or_default().to_owned();
        // A path is `/package.Service/Method`.
        let full_name = self.path.trim_start_matches('/').replace('/', ".");
        let service = full_name.rsplit_once('.').map_or("", |(service, _)| service);
        vec![
            ("MethodName", last(&full_name, '.')),
            ("ServiceName", last(service, '.')),
            ("FullyQualifiedName", full_name.clone()),
            ("InputName", last(&self.request_type, '.')),
            ("OutputName", last(&self.response_type, '.')),
            ("IsClientStreaming", self.is_client_streaming.to_string()),
            ("IsServerStreaming", self.is_server_streaming.to_string()),
        ]
    }

    /// Whether the JSON of a request may be an array.
    pub(crate) fn takes_arrays(&self) -> bool {
        matches!(&*self.request_type, "google.protobuf.ListValue" | "google.protobuf.Value")
    }

    /// Encodes a request. Refuses a message that lacks a field that proto2 requires, but passes binary requests through
    /// unchecked.
    pub(crate) fn encoded(
        &self,
        format: MessageFormat,
        written: &[u8],
        ignore_unknown: bool,
    ) -> Result<Vec<u8>, String> {
        let message =
            self.schema.message(&self.request_type).ok_or("the schema does not have the request's type")?;
        let options = ParseOptions { ignore_unknown, ..ParseOptions::default() };
        let mut wire = Vec::with_capacity(written.len());
        match format {
            MessageFormat::Json => json::parse(message, written, &options, &mut wire),
            MessageFormat::Text => text_format::parse(message, written, &options, &mut wire),
            MessageFormat::Binary => return Ok(written.to_vec()),
        }
        .map_err(|error| error.to_string())?;
        Ok(wire)
    }
}

impl Called {
    /// Where no request is written: a message without fields, if its type can do without.
    pub(crate) fn empty(&self) -> Result<Vec<u8>, String> {
        self.encoded(MessageFormat::Json, b"{}", false)
    }
}

/// What the method is, by its descriptor.
pub(crate) async fn look_up(catalogue: &mut Catalogue, name: &MethodName) -> Result<Called, Failure> {
    let schema = catalogue.schema_of(name.service()).await.map_err(Failure::failed)?;
    let service = schema.as_ref().and_then(|schema| schema.service(name.service()));
    let Some((schema, service)) = schema.as_ref().zip(service) else {
        return Err(no_service(catalogue, name.service()).await);
    };
    let Some(method) = service.method(name.method()) else {
        let near = near(service.methods().map(thalweg_protobuf::Method::name), name.method());
        return Err(Failure::bad_arguments(format!(
            "{} has no method `{}`{near}",
            name.service(),
            name.method()
        )));
    };
    Ok(Called {
        path: method.path(),
        request_type: method.input().full_name().to_owned(),
        response_type: method.output().full_name().to_owned(),
        is_client_streaming: method.is_client_streaming(),
        is_server_streaming: method.is_server_streaming(),
        schema: schema.clone(),
    })
}

/// That there is no such service, and which there are.
pub(crate) async fn no_service(catalogue: &mut Catalogue, name: &str) -> Failure {
    let known = catalogue.services().await.unwrap_or_default();
    if known.iter().any(|known| known == name) {
        return Failure::failed(format!(
            "reflection lists the service `{name}` but does not describe it; use --proto or --protoset"
        ));
    }
    let near = near(known.iter().map(String::as_str), name);
    Failure::bad_arguments(format!("unknown service `{name}`{near}{}", of_files(catalogue)))
}

/// Where else a name may be declared, if descriptors come from files.
pub(crate) fn of_files(catalogue: &Catalogue) -> &'static str {
    match catalogue {
        Catalogue::Files { .. } => "; another --proto or --protoset may declare it",
        Catalogue::Server(_) => "",
    }
}
