//! What prost-build calls for each service: the client's module, then the server's.

use std::collections::HashSet;

use prost_build::{Service, ServiceGenerator};

use crate::name::ServiceNames;
use crate::service::ServiceOptions;
use crate::{client, descriptors, server};

/// The generator handed to prost-build.
pub(crate) struct Stubs {
    options: ServiceOptions,
    /// The packages whose descriptors have been brought into their code.
    described: HashSet<String>,
}

impl Stubs {
    pub(crate) fn new(options: ServiceOptions) -> Self {
        Stubs { options, described: HashSet::new() }
    }
}

impl ServiceGenerator for Stubs {
    fn generate(&mut self, service: Service, buf: &mut String) {
        let names = ServiceNames::of(&service);
        if self.options.client {
            buf.push_str(&client::module(&service, &names, &self.options).to_string());
        }
        if self.options.server {
            if self.options.embeds_descriptors && self.described.insert(service.package.clone()) {
                buf.push_str(&descriptors::item(&service.package).to_string());
            }
            buf.push_str(&server::module(&service, &names, &self.options).to_string());
        }
    }
}
