//! Macros that include generated code.

/// Includes the code that was generated from the `.proto` files of a package.
///
/// ```ignore
/// pub mod shop {
///     thalweg_core::include_proto!("shop");
/// }
/// ```
#[macro_export]
macro_rules! include_proto {
    ($package: tt) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".rs"));
    };
}

/// Includes the file descriptor set that was generated, as bytes.
///
/// ```ignore
/// const FILE_DESCRIPTOR_SET: &[u8] = thalweg_core::include_file_descriptor_set!("shop_descriptor");
/// ```
#[macro_export]
macro_rules! include_file_descriptor_set {
    ($name: tt) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bin"))
    };
}
