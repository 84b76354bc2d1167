//! What is asked of an etcd: a server that somebody runs, and no example. It has no reflection; its protos are those of
//! the client that the step `programs` drives.

use super::case::{Case, PLAIN};
use super::load::{FINE, Load};
use super::servers::Kind;

const RPC: &str = "ETCD/etcd/api/etcdserverpb/rpc.proto";
/// `oak` and `101`, bytes in JSON.
const PUT: &str = r#"{"key": "b2Fr", "value": "MTAx", "prevKv": true}"#;
const OAK: &str = r#"{"key": "b2Fr"}"#;

pub(super) const CASES: &[Case] = &[
    Case {
        server: Kind::Etcd,
        words: &["list"],
        exit_code: 1,
        says: &["the server does not support reflection"],
        ..PLAIN
    },
    Case {
        server: Kind::Etcd,
        words: &["describe", "etcdserverpb.KV.Put", "--proto", RPC, "-i", "ETCD/"],
        says: &[
            "rpc Put(etcdserverpb.PutRequest) returns (etcdserverpb.PutResponse) {",
            "post: \"/v3/kv/put\"",
        ],
        ..PLAIN
    },
    Case {
        server: Kind::Etcd,
        words: &["etcdserverpb.KV/Put", "--proto", RPC, "-i", "ETCD/", "--compact", "-d", PUT],
        // What the load put there.
        says: &[r#""prevKv":{"key":"b2Fr","#, r#""value":"MTAw"}"#],
        ..PLAIN
    },
    Case {
        server: Kind::Etcd,
        words: &["etcdserverpb.KV/Range", "--proto", RPC, "-i", "ETCD/", "--compact", "-d", OAK],
        says: &[r#""kvs":[{"key":"b2Fr","#, r#""version":"2","value":"MTAx"}],"count":"1"}"#],
        ..PLAIN
    },
    Case {
        server: Kind::Etcd,
        words: &["etcdserverpb.KV/Put", "--proto", RPC, "-i", "ETCD/", "-d", "{}"],
        exit_code: 64 + 3,
        says: &["INVALID_ARGUMENT (3): etcdserver: key is not provided"],
        ..PLAIN
    },
];

pub(super) const LOADS: &[Load] = &[
    Load {
        server: Kind::Etcd,
        words: &[
            "--call",
            "etcdserverpb.KV/Put",
            "--proto",
            RPC,
            "-i",
            "ETCD/",
            "-d",
            r#"{"key": "b2Fr", "value": "MTAw"}"#,
            "-n",
            "1",
            "-c",
            "1",
        ],
        ok: 1,
        received: 1,
        ..FINE
    },
    Load {
        server: Kind::Etcd,
        words: &[
            "--call",
            "etcdserverpb.KV/Range",
            "--proto",
            RPC,
            "-i",
            "ETCD/",
            "-d",
            OAK,
            "--check",
            "count == 1",
            "--check",
            "kvs[0].value == MTAw",
            "--rps",
            "500",
            "-n",
            "500",
        ],
        ok: 500,
        received: 500,
        ..FINE
    },
];
