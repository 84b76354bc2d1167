//! What prost-build calls for each service: the client's module, then the server's.

use prost_build::{Service, ServiceGenerator};

use crate::name::ServiceNames;
use crate::service::ServiceOptions;
use crate::{client, server};

/// The generator handed to prost-build.
pub(crate) struct Stubs {
    options: ServiceOptions,
}

impl Stubs {
    pub(crate) fn new(options: ServiceOptions) -> Self {
        Stubs { options }
    }
}

impl ServiceGenerator for Stubs {
    fn generate(&mut self, service: Service, buf: &mut String) {
        let names = ServiceNames::of(&service);
        if self.options.client {
            buf.push_str(&client::module(&service, &names, &self.options));
        }
        if self.options.server {
            buf.push_str(&server::module(&service, &names, &self.options));
        }
    }
}
