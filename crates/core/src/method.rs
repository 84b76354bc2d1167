//! The method of a call.

/// Service and method of a call, which generated clients add to the extensions of a request.
#[derive(Clone, Debug)]
pub struct GrpcMethod<'a> {
    service: &'a str,
    method: &'a str,
}

impl<'a> GrpcMethod<'a> {
    #[doc(hidden)]
    pub fn new(service: &'a str, method: &'a str) -> Self {
        Self { service, method }
    }

    /// Returns the full name of the service, such as `shop.Orders`.
    pub fn service(&self) -> &str {
        self.service
    }

    /// Returns the method's name.
    pub fn method(&self) -> &str {
        self.method
    }
}
