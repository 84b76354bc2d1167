//! Types that are known only at run time.

use std::any::Any;

/// Converts `value` to a `T` if it is one; otherwise returns it.
pub(crate) fn take_as<T: 'static, V: 'static>(value: V) -> Result<T, V> {
    let mut value = Some(value);
    if let Some(value) = (&mut value as &mut dyn Any).downcast_mut::<Option<T>>()
        && let Some(value) = value.take()
    {
        return Ok(value);
    }
    value.map_or_else(|| unreachable!("one of the two types"), Err)
}
