//! What the maps of heads are made of, from those that were sent on to those that come.
//!
//! A map of fields has two blocks, and so has one of extensions. A thread that forwards many requests gets along with the
//! blocks of those that are under way at a time.

use std::cell::RefCell;

use http::{Extensions, HeaderMap};

/// Maps of each kind that a thread keeps; as many as requests are under way at a time on a busy one.
const MOST: usize = 128;

/// Fields of a map that is worth keeping.
const LARGEST: usize = 64;

thread_local! {
    static SPARE: RefCell<Spare> = const {
        RefCell::new(Spare {
            fields: Vec::new(),
            extensions: Vec::new(),
        })
    };
}

struct Spare {
    fields: Vec<HeaderMap>,
    extensions: Vec<Extensions>,
}

/// An empty map with room for so many fields.
pub(crate) fn fields(count: usize) -> HeaderMap {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().fields.pop());
    match spare {
        Ok(Some(fields)) if fields.capacity() >= count => fields,
        _ => HeaderMap::with_capacity(count),
    }
}

/// Empty extensions.
pub(crate) fn extensions() -> Extensions {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().extensions.pop());
    spare.ok().flatten().unwrap_or_default()
}

/// Keeps the maps of a head that nobody needs any more. What is in them is dropped.
pub(crate) fn give_back(mut fields: HeaderMap, mut extensions: Extensions) {
    // With these, programs' values are dropped, which may want a map themselves.
    fields.clear();
    extensions.clear();
    // A thread that ends has no use for it.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if (1..=LARGEST).contains(&fields.capacity()) && spare.fields.len() < MOST {
            spare.fields.push(fields);
        }
        if spare.extensions.len() < MOST {
            spare.extensions.push(extensions);
        }
    });
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{ACCEPT, HOST};

    use super::*;

    #[test]
    fn what_is_kept_is_empty_and_has_room() {
        let mut used = HeaderMap::with_capacity(8);
        used.append(HOST, HeaderValue::from_static("a"));
        used.append(ACCEPT, HeaderValue::from_static("b"));
        used.append(ACCEPT, HeaderValue::from_static("c"));
        let mut said = Extensions::new();
        said.insert(7_u8);
        let capacity = used.capacity();
        give_back(used, said);
        let again = fields(capacity);
        assert_eq!(again.capacity(), capacity);
        assert!(again.is_empty() && !again.contains_key(ACCEPT));
        assert!(extensions().is_empty());
        give_back(again, Extensions::new());
        assert!(
            fields(capacity + 1).capacity() > capacity,
            "it is too small"
        );
    }

    #[test]
    fn neither_many_nor_large_ones_are_kept() {
        for _ in 0..2 * MOST {
            give_back(HeaderMap::with_capacity(LARGEST * 2), Extensions::new());
            give_back(HeaderMap::with_capacity(4), Extensions::new());
        }
        let (kept, large) = SPARE.with(|spare| {
            let spare = spare.borrow();
            let large = spare.fields.iter().any(|map| map.capacity() > LARGEST);
            (spare.fields.len().max(spare.extensions.len()), large)
        });
        assert_eq!((kept, large), (MOST, false));
    }
}
