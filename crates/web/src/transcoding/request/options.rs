//! What is accepted.

use thalweg_protobuf::json::ParseOptions;

/// What is accepted.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// Of bodies and values. With `ignore_unknown` also parameters are left alone that no field is for.
    pub parse: ParseOptions,
    /// In a query, `+` is a space: as forms and browsers write it.
    pub plus_is_space: bool,
    /// Parameters that a query may have: 1,000.
    pub parameters_max: usize,
    /// Names of parameters that are left alone, also where a field is called so: `utm_source`, or `access_token`, which
    /// another layer reads. None by default.
    pub ignored_parameters: Vec<String>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        RequestOptions {
            parse: ParseOptions::default(),
            plus_is_space: true,
            parameters_max: 1000,
            ignored_parameters: Vec::new(),
        }
    }
}
