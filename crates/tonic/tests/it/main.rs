//! What a program sees of this crate under the name `tonic`.

use thalweg_tonic as tonic;

mod connecting;
mod greeter;
