//! The messages of `shapes.proto` in buffa's form, and reading all fields of their views.

pub(crate) use generated::*;

use crate::read::read_views;

#[allow(warnings, clippy::all, clippy::pedantic, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/buffa/shapes.mod.rs"));
}

read_views! {
    PersonView { name, age, hobbies, address }
    AddressView { city, zip_code }
    SeveralDataView { a_float, a_double, an_int32, an_int64, a_bool, a_string, strings }
    OrderView {
        id, customer, email, created_at, updated_at, quantity, price, currency, paid, gift, note, coupon, warehouse
    }
    LogRecordView { time_ns, level, service, message, trace, status, took_ns }
    VisitView { session, visitor, campaign, events }
    VisitorView { id, country, device }
    DeviceView { system, browser, width, height }
    CampaignView { source, medium, name }
    EventView { name, time_ms, page, value, labels }
    SamplesView { sensor, begin_ms, deltas, values, weights, counts, flags }
}

#[cfg(test)]
mod tests {
    use buffa::HasMessageView;
    use thalweg_protobuf::Decoder;

    use crate::codecs::engine;
    use crate::read::Read;
    use crate::shapes::{DESCRIPTORS, shapes};
    use crate::viewed;

    #[test]
    fn every_field_of_a_small_message_is_read() {
        let wire = b"\x0a\x05Ahmed\x10\x14\x1a\x04skis\x1a\x02go\x22\x06\x0a\x04Cork";
        let of = engine::message_type(DESCRIPTORS, "shapes.Person").unwrap();
        let expected = 5 + 20 + 4 + 2 + 4;
        assert_eq!(Decoder::default().decode(of, wire).unwrap().read(), expected);
        assert_eq!(viewed::Person::decode_view(wire).unwrap().read(), expected);
        let negative = b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(Decoder::default().decode(of, negative).unwrap().read(), u64::MAX);
        assert_eq!(viewed::Person::decode_view(negative).unwrap().read(), u64::MAX);
    }

    /// Both borrowing decoders yield equal values for each field.
    #[test]
    fn views_and_dynamic_messages_read_equally() {
        fn check<B>(name: &str, type_name: &str)
        where
            B: HasMessageView + 'static,
            for<'w> B::View<'w>: Read,
        {
            let of = engine::message_type(DESCRIPTORS, type_name).unwrap();
            let shape = shapes(1).unwrap().into_iter().find(|shape| shape.name == name).unwrap();
            let mut decoder = Decoder::default();
            for wire in shape.entries[0].converter.wires() {
                let dynamic = decoder.decode(of, wire).unwrap().read();
                assert_eq!(dynamic, B::decode_view(wire).unwrap().read(), "{name}");
                assert!(dynamic > 0, "{name}");
            }
        }
        check::<viewed::Person>("person-full", "shapes.Person");
        check::<viewed::Person>("person-sparse", "shapes.Person");
        check::<viewed::SeveralData>("several-data", "shapes.SeveralData");
        check::<viewed::Order>("order", "shapes.Order");
        check::<viewed::LogRecord>("log-record", "shapes.LogRecord");
        check::<viewed::Visit>("visit", "shapes.Visit");
        check::<viewed::Samples>("samples", "shapes.Samples");
    }
}
