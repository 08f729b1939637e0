//! Ids as the page shows them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// An id, decoded.
pub(super) fn shown(id: &str) -> String {
    percent_decode_str(id)
        .decode_utf8()
        .map_or_else(|_| id.to_owned(), Cow::into_owned)
}

/// Returns true if `filter`, in lower case, occurs in an id as written or as the page shows it, decoded.
pub(super) fn has_id(id: &str, filter: &str) -> bool {
    id.to_lowercase().contains(filter) || shown(id).to_lowercase().contains(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_written_and_as_shown() {
        let id = "fabric%3A%2FShop%2FCatalog:catalog";
        for (filter, is_found) in [
            ("", true),
            ("shop/catalog", true),
            ("fabric:/shop", true),
            ("%2fcatalog", true),
            ("shop:catalog", false),
        ] {
            assert_eq!(has_id(id, filter), is_found, "{filter}");
        }
    }
}
