//! Extensions of heads that are used again.

use http::Extensions;

/// Inserts a value into the extensions of a head. A present value of its type is overwritten, which needs no
/// allocation.
pub(crate) fn put_in_place<T: Clone + Send + Sync + 'static>(
    extensions: &mut Extensions,
    value: T,
) {
    match extensions.get_mut::<T>() {
        Some(place) => *place = value,
        None => {
            extensions.insert(value);
        }
    }
}
