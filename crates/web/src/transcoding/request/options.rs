//! Options for requests.

use thalweg_protobuf::json::ParseOptions;

/// Options for requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

impl RequestOptions {
    /// Sets [`parse`](field@Self::parse).
    pub fn parse(mut self, parse: ParseOptions) -> Self {
        self.parse = parse;
        self
    }

    /// Sets [`plus_is_space`](field@Self::plus_is_space).
    pub fn plus_is_space(mut self, plus_is_space: bool) -> Self {
        self.plus_is_space = plus_is_space;
        self
    }

    /// Sets [`parameters_max`](field@Self::parameters_max).
    pub fn parameters_max(mut self, parameters_max: usize) -> Self {
        self.parameters_max = parameters_max;
        self
    }

    /// Sets [`ignored_parameters`](field@Self::ignored_parameters).
    pub fn ignored_parameters(mut self, ignored_parameters: Vec<String>) -> Self {
        self.ignored_parameters = ignored_parameters;
        self
    }
}
