//! Options for printing and parsing.

/// Maximum nesting depth, as in decoding.
const DEPTH_MAX: usize = 100;

/// Options for printing a message.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of ProtoJSON")]
#[non_exhaustive]
pub struct PrintOptions {
    /// Prints fields without presence even if they are zero, empty strings, lists or maps. Default: false.
    pub defaults: bool,
    /// Prints schema names (`user_id`) instead of JSON names (`userId`). Default: false.
    pub schema_names: bool,
    /// Prints enums as numbers. Default: false.
    pub enum_numbers: bool,
    /// Allows missing required fields (proto2's `required`). Default: false.
    pub allow_partial: bool,
    /// Maximum length of the output, in bytes. Default: 256 MiB. A message of two bytes may have a long name; with
    /// `defaults` the output is as long as its type has fields.
    pub len_max: usize,
    /// Prints JSON with one member or element per line, indented by two spaces. Default: false.
    pub pretty: bool,
    /// Maximum nesting depth of messages, not counting the outermost. Default: 100.
    pub depth_max: usize,
}

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions {
            defaults: false,
            schema_names: false,
            enum_numbers: false,
            allow_partial: false,
            pretty: false,
            depth_max: DEPTH_MAX,
            len_max: 256 << 20,
        }
    }
}

impl PrintOptions {
    /// Sets [`defaults`](field@Self::defaults).
    pub fn defaults(mut self, defaults: bool) -> Self {
        self.defaults = defaults;
        self
    }

    /// Sets [`schema_names`](field@Self::schema_names).
    pub fn schema_names(mut self, schema_names: bool) -> Self {
        self.schema_names = schema_names;
        self
    }

    /// Sets [`enum_numbers`](field@Self::enum_numbers).
    pub fn enum_numbers(mut self, enum_numbers: bool) -> Self {
        self.enum_numbers = enum_numbers;
        self
    }

    /// Sets [`allow_partial`](field@Self::allow_partial).
    pub fn allow_partial(mut self, allow_partial: bool) -> Self {
        self.allow_partial = allow_partial;
        self
    }

    /// Sets [`len_max`](field@Self::len_max).
    pub fn len_max(mut self, len_max: usize) -> Self {
        self.len_max = len_max;
        self
    }

    /// Sets [`pretty`](field@Self::pretty).
    pub fn pretty(mut self, pretty: bool) -> Self {
        self.pretty = pretty;
        self
    }

    /// Sets [`depth_max`](field@Self::depth_max).
    pub fn depth_max(mut self, depth_max: usize) -> Self {
        self.depth_max = depth_max;
        self
    }
}

/// Options for parsing a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParseOptions {
    /// Ignores unknown members and unknown enum values. Default: false.
    pub ignore_unknown: bool,
    /// Allows missing required fields (proto2's `required`). Default: false.
    pub allow_partial: bool,
    /// Maximum nesting depth of messages, not counting the outermost. Default: 100.
    pub depth_max: usize,
    /// Maximum length of the wire bytes built, in bytes. Default: 256 MiB. Parsing stops there: an element of two
    /// bytes of JSON can become eleven on the wire.
    pub len_max: usize,
}

impl Default for ParseOptions {
    fn default() -> Self {
        ParseOptions { ignore_unknown: false, allow_partial: false, depth_max: DEPTH_MAX, len_max: 256 << 20 }
    }
}

impl ParseOptions {
    /// Sets [`ignore_unknown`](field@Self::ignore_unknown).
    pub fn ignore_unknown(mut self, ignore_unknown: bool) -> Self {
        self.ignore_unknown = ignore_unknown;
        self
    }

    /// Sets [`allow_partial`](field@Self::allow_partial).
    pub fn allow_partial(mut self, allow_partial: bool) -> Self {
        self.allow_partial = allow_partial;
        self
    }

    /// Sets [`depth_max`](field@Self::depth_max).
    pub fn depth_max(mut self, depth_max: usize) -> Self {
        self.depth_max = depth_max;
        self
    }

    /// Sets [`len_max`](field@Self::len_max).
    pub fn len_max(mut self, len_max: usize) -> Self {
        self.len_max = len_max;
        self
    }
}
