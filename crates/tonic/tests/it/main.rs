//! Tests of this crate's API under the name `tonic`.

use thalweg_tonic as tonic;

mod connecting;
mod greeter;
