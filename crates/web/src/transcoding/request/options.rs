//! Options for requests.

use thalweg_protobuf::json::ParseOptions;

/// Options for requests.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// For bodies and values. With `ignore_unknown`, parameters without a field are ignored too.
    pub parse: ParseOptions,
    /// Whether `+` is a space in a query, as in forms and browsers. On by default.
    pub plus_is_space: bool,
    /// Maximum number of query parameters; 1,000 by default.
    pub parameters_max: usize,
    /// Names of ignored parameters, even if a field has the name: `utm_source`, or `access_token`, which another layer
    /// reads. None by default.
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
