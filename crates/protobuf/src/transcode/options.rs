//! What is written, and what is accepted.

/// As decoding has it.
const DEPTH_MAX: usize = 100;

/// How a message is printed.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five switches of ProtoJSON that have nothing to do with each other"
)]
pub struct PrintOptions {
    /// Print also the fields without presence that are not set: zeros, empty strings, lists and maps.
    pub defaults: bool,
    /// Print names as the schema has them (`user_id`), and not as JSON has them (`userId`).
    pub schema_names: bool,
    /// Print enums as numbers.
    pub enum_numbers: bool,
    /// Print also a message without fields that it must have: proto2's `required`.
    pub allow_partial: bool,
    /// Bytes that are printed, at most: 256 MiB. A message of two bytes may have a long name, and with `defaults` it
    /// is as long as its type has fields.
    pub len_max: usize,
    /// In JSON, give each member and element a line of its own, indented by two spaces.
    pub pretty: bool,
    /// Messages that may lie in one another, the outermost not counted: 100.
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

/// What is accepted as a message.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// Leave out members that the type does not have, and values whose names an enum does not have.
    pub ignore_unknown: bool,
    /// Accept also a message without fields that it must have: proto2's `required`.
    pub allow_partial: bool,
    /// Messages that may lie in one another, the outermost not counted: 100.
    pub depth_max: usize,
    /// Maximum length of the wire bytes that are built, in bytes; 256 MiB by default. Building stops there: an element
    /// of two bytes of JSON can become eleven on the wire.
    pub len_max: usize,
}

impl Default for ParseOptions {
    fn default() -> Self {
        ParseOptions { ignore_unknown: false, allow_partial: false, depth_max: DEPTH_MAX, len_max: 256 << 20 }
    }
}
