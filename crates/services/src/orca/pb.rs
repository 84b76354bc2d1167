//! Generated messages, client and server of the protocol.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

pub mod data {
    pub mod orca {
        pub mod v3 {
            thalweg::include_proto!("xds.data.orca.v3");
        }
    }
}

pub mod service {
    pub mod orca {
        pub mod v3 {
            thalweg::include_proto!("xds.service.orca.v3");
        }
    }
}

pub use data::orca::v3::OrcaLoadReport;
pub use service::orca::v3::{OrcaLoadReportRequest, open_rca_service_client, open_rca_service_server};
