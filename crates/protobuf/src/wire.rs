//! The [wire format](https://protobuf.dev/programming-guides/encoding/): varints, tags and the lengths of records.
