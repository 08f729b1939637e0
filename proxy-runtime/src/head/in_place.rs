//! Extensions of heads that are used again.

use http::Extensions;

/// Puts a value into the extensions of a head: in the place of one of its type, if there is one, so that it takes no
/// block.
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
