//! Indices of declarations in the pool.

macro_rules! ids {
    ($($id:ident)*) => {$(
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(super) struct $id(pub(super) u32);
    )*};
}

ids! { FileId MessageId EnumId FieldId ServiceId NodeId }
