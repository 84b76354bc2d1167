//! Code generated from `proto/`, except for the shop.
#![allow(clippy::pedantic, unreachable_pub, reason = "generated")]

pub(crate) mod arcs {
    tonic::include_proto!("arcs");
}
pub(crate) mod google {
    pub(crate) mod protobuf {
        #![allow(clippy::all, dead_code, reason = "only some of it is used")]
        tonic::include_proto!("google.protobuf");
    }
}
pub(crate) mod included {
    tonic::include_proto!("included");
}
pub(crate) mod names {
    tonic::include_proto!("names");

    impl std::fmt::Debug for Plain {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("not the generator's")
        }
    }
}
pub(crate) mod stubs {
    tonic::include_proto!("stubs");
}
pub(crate) mod wellknown {
    tonic::include_proto!("wellknown");
}
