//! The HPACK table: fields that header blocks reference by index (RFC 7541 section 2.3).

use std::collections::VecDeque;

/// Maximum size of the table, in bytes as counted by RFC 7541 section 4.1: the default of the
/// protocol, which `h2` does not change.
pub(super) const MOST: usize = 4096;

/// The size of a field beyond its bytes.
const OVERHEAD: usize = 32;

/// The name of a field, as far as its value depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Regular,
    Authority,
    Method,
    Path,
    Protocol,
    Scheme,
    Status,
}

/// A field in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) name_length: usize,
    pub(super) value_length: usize,
    /// True if a request with a field of this name is malformed.
    pub(super) has_bad_name: bool,
    /// True if a request with this field is malformed.
    pub(super) is_bad: bool,
}

impl Entry {
    fn size(&self) -> usize {
        self.name_length + self.value_length + OVERHEAD
    }
}

/// The dynamic table of a connection, without the text of its fields.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest field first.
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            most: MOST,
        }
    }
}

impl Table {
    /// The field with this index, if it exists.
    pub(super) fn get(&self, index: usize) -> Option<Entry> {
        match index {
            0 => None,
            1..=STATIC_PSEUDO => Some(fixed(index, pseudo_of(index), 0)),
            _ => match REGULAR.get(index - STATIC_PSEUDO - 1) {
                Some(name) => Some(fixed(index, Name::Regular, name.len())),
                None => {
                    // The dynamic table follows the static one (RFC 7541 section 2.3.3).
                    let place = index - STATIC_PSEUDO - 1 - REGULAR.len();
                    self.entries.get(place).copied()
                }
            },
        }
    }

    /// Number of fields in the dynamic table.
    #[cfg(feature = "testing")]
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Adds a field at the first index. Evicts the oldest fields if necessary.
    pub(super) fn add(&mut self, entry: Entry) {
        // Evicts first; an entry larger than the table leaves it empty (RFC 7541 section 4.4).
        self.shrink(self.most.saturating_sub(entry.size()));
        if entry.size() <= self.most {
            self.size += entry.size();
            self.entries.push_front(entry);
        }
    }

    /// Sets the size. `None` if it exceeds the size granted to the client.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        if most > MOST {
            return None;
        }
        self.most = most;
        self.shrink(most);
        Some(())
    }

    fn shrink(&mut self, most: usize) {
        while self.size > most {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size -= oldest.size();
        }
    }
}

fn fixed(index: usize, name: Name, length: usize) -> Entry {
    let name_length = match name {
        Name::Regular => length,
        Name::Authority => ":authority".len(),
        Name::Method => ":method".len(),
        Name::Path => ":path".len(),
        Name::Protocol => ":protocol".len(),
        Name::Scheme => ":scheme".len(),
        Name::Status => ":status".len(),
    };
    Entry {
        name,
        name_length,
        value_length: 0,
        has_bad_name: false,
        // These are fields of responses; `h2` rejects them in requests.
        is_bad: (8..=STATIC_PSEUDO).contains(&index),
    }
}

/// Number of pseudo-header fields, with which the static table begins (RFC 7541 appendix A).
const STATIC_PSEUDO: usize = 14;

fn pseudo_of(index: usize) -> Name {
    match index {
        1 => Name::Authority,
        2 | 3 => Name::Method,
        4 | 5 => Name::Path,
        6 | 7 => Name::Scheme,
        _ => Name::Status,
    }
}

#[rustfmt::skip]
const REGULAR: [&str; 47] = [
    "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age",
    "allow", "authorization", "cache-control", "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-type", "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified", "link", "location", "max-forwards",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "refresh", "retry-after", "server", "set-cookie",
    "strict-transport-security", "transfer-encoding", "user-agent", "vary", "via", "www-authenticate",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value_length: usize) -> Entry {
        Entry {
            name: Name::Regular,
            name_length: 10,
            value_length,
            has_bad_name: false,
            is_bad: false,
        }
    }

    /// The static table of RFC 7541 appendix A.
    #[test]
    fn the_static_table_has_61_fields() {
        let table = Table::default();
        let name = |index| {
            table
                .get(index)
                .map(|entry| (entry.name, entry.name_length))
        };
        assert_eq!(name(0), None);
        assert_eq!(name(1), Some((Name::Authority, 10)));
        assert_eq!(name(3), Some((Name::Method, 7)));
        assert_eq!(name(4), Some((Name::Path, 5)));
        assert_eq!(name(7), Some((Name::Scheme, 7)));
        assert_eq!(name(14), Some((Name::Status, 7)));
        assert_eq!(name(15), Some((Name::Regular, "accept-charset".len())));
        assert_eq!(name(32), Some((Name::Regular, "cookie".len())));
        assert_eq!(name(61), Some((Name::Regular, "www-authenticate".len())));
        assert_eq!(name(62), None);
    }

    /// A field larger than the table empties it (RFC 7541 section 4.4).
    #[test]
    fn old_fields_leave_for_new_ones() {
        let mut table = Table::default();
        for value in [1000, 2000, 900] {
            table.add(entry(value));
        }
        let lengths = |table: &Table| -> Vec<_> {
            let entries = (62..).map_while(|index| table.get(index));
            entries.map(|entry| entry.value_length).collect()
        };
        assert_eq!(lengths(&table), [900, 2000, 1000]);
        table.add(entry(500));
        assert_eq!(lengths(&table), [500, 900, 2000]);
        table.resize(1484).unwrap();
        assert_eq!(lengths(&table), [500, 900]);
        assert_eq!(table.resize(4097), None);
        table.resize(4096).unwrap();
        assert_eq!(lengths(&table), [500, 900]);
        table.add(entry(4096));
        assert_eq!(lengths(&table), [0; 0]);
    }
}
