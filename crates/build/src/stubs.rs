//! Generates, for each service of prost-build, the client module and then the server module.

use std::collections::HashSet;

use prost_build::{Service, ServiceGenerator};

use crate::name::ServiceNames;
use crate::service::ServiceOptions;
use crate::{client, descriptors, server};

/// The generator handed to prost-build.
pub(crate) struct Stubs {
    options: ServiceOptions,
    /// Packages whose code already includes the descriptors.
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
