//! The lines of a text of JSON, and of each value in it. They are found when a problem needs them.

use std::collections::HashSet;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::flat::parts;
use super::lenient::{blanked, string_length};
use super::node::Key;

/// A value of a layer: where it is, and where the values in it are.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The line, counted from 1, or the position of a setting.
    pub(super) at: usize,
    /// The line in which the key is written a second time.
    pub(super) again: Option<usize>,
    /// False for an object and a list.
    pub(super) is_value: bool,
    pub(super) inside: IndexMap<Key, Self>,
}

impl Place {
    /// Finds the places of a text that has been read as a document.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = blanked(text).text;
        let mut scanner = Scanner {
            text: &text,
            at: 0,
            line: 1,
        };
        scanner.value(None)
    }

    /// Returns the place that a pointer leads to, or the last one on the way there, and the number of
    /// tokens that lead to it.
    pub(super) fn find(&self, pointer: &str) -> (&Self, usize) {
        let mut place = self;
        let mut depth = 0;
        for token in pointer.split('/').skip(1) {
            let key = token.replace("~1", "/").replace("~0", "~");
            match place.inside.get(&Key::new(key)) {
                Some(inside) => place = inside,
                None => break,
            }
            depth += 1;
        }
        (place, depth)
    }

    /// Adds a place under a path of keys. What is there already stays, as it does in a document.
    pub(super) fn insert(&mut self, path: &[&str], place: Self) {
        let Some((first, rest)) = path.split_first() else {
            self.join(place);
            return;
        };
        let at = place.at;
        let inside = self.inside.entry(Key::new(*first));
        let inside = inside.or_insert_with(|| Self {
            at,
            ..Self::default()
        });
        inside.insert(rest, place);
    }

    fn join(&mut self, other: Self) {
        self.is_value |= other.is_value;
        for (key, place) in other.inside {
            match self.inside.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(place);
                }
                Entry::Occupied(mut entry) => entry.get_mut().join(place),
            }
        }
    }
}

/// A walk over a text that the parser has accepted, so that its depth is limited. `None` where the text is
/// not JSON after all.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl Scanner<'_> {
    /// Returns the next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                byte => return Some(byte),
            }
            self.at += 1;
        }
    }

    /// Skips the next byte if it equals `wanted`.
    fn skip(&mut self, wanted: u8) -> bool {
        let is_it = self.next() == Some(wanted);
        self.at += usize::from(is_it);
        is_it
    }

    /// Reads a value. `parent` is the key that it has.
    fn value(&mut self, parent: Option<&str>) -> Option<Place> {
        let first = self.next()?;
        let mut place = Place {
            at: self.line,
            ..Place::default()
        };
        match first {
            b'{' => {
                self.at += 1;
                let mut keys = HashSet::new();
                while !self.skip(b'}') {
                    self.next()?;
                    let line = self.line;
                    let key = self.key()?;
                    let is_container = matches!(self.next()?, b'{' | b'[');
                    let path = parts(&key, parent, is_container).unwrap_or_else(|| vec![&key]);
                    let inside = self.value(path.last().copied())?;
                    // Of a repeated key, a document keeps the first value.
                    if keys.insert(Key::new(key.as_str())) {
                        place.insert(&path, inside);
                    } else if let Some(first) = place.inside.get_mut(&Key::new(key.as_str())) {
                        first.again.get_or_insert(line);
                    }
                    self.skip(b',');
                }
            }
            b'[' => {
                self.at += 1;
                while !self.skip(b']') {
                    let inside = self.value(None)?;
                    let index = place.inside.len().to_string();
                    place.inside.insert(Key::new(index), inside);
                    self.skip(b',');
                }
            }
            b'"' => {
                self.at += string_length(&self.text.as_bytes()[self.at..]);
                place.is_value = true;
            }
            _ => {
                let rest = &self.text.as_bytes()[self.at..];
                let ends = |byte: &u8| b",]} \t\r\n".contains(byte);
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                place.is_value = true;
            }
        }
        Some(place)
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Option<String> {
        (self.next()? == b'"').then_some(())?;
        let start = self.at;
        self.at += string_length(&self.text.as_bytes()[start..]);
        let key = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
        self.skip(b':').then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, pointer: &str) -> (usize, usize) {
        let place = Place::of_text(text).unwrap();
        let (found, depth) = place.find(pointer);
        (found.at, depth)
    }

    #[test]
    fn values_have_their_lines() {
        let text = "\u{feff}{\n  // a comment\n  \"a\": {\n    \"b\": [ 1,\n      { \"c\": 2 }, ],\n  },\n  \"d:e\": /* x\n */ 3,\n \"d\": { \"f\": 4 },\n  \"\\u0067\": 5\n}";
        for (pointer, expected) in [
            ("", (1, 0)),
            ("/a", (3, 1)),
            ("/A/b/0", (4, 3)),
            ("/a/b/1/C", (5, 4)),
            // Something that is not written is where it would be.
            ("/a/b/1/none/deeper", (5, 3)),
            ("/none", (1, 0)),
            ("/d/e", (8, 2)),
            ("/d/f", (9, 2)),
            ("/g", (10, 1)),
        ] {
            assert_eq!(line(text, pointer), expected, "{pointer}");
        }
    }
}
