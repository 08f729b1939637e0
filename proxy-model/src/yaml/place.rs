//! The line of a value, looked for only once something is wrong with it.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// A list or an object on the way.
struct OpenPlace {
    is_object: bool,
    /// Keys and values so far.
    count: usize,
    /// True if the node is on the path to the requested place.
    is_on_way: bool,
    /// True if the last key is on that path.
    is_key_on_way: bool,
}

/// Returns the line, counted from 1, of the value at `path` in a document of a text: keys, and indexes of
/// lists. Documents are counted like in [`documents`](super::documents). If the path leads beyond the
/// document, the line is that of its last existing part. The text may be JSON.
#[must_use]
pub fn line_of(text: &str, document: usize, path: &[&str]) -> Option<usize> {
    let mut search = Search {
        path,
        document,
        seen: 0,
        is_empty: true,
        open: Vec::new(),
        line: None,
    };
    for event in Parser::new_from_str(super::unmarked(text)) {
        let (event, span) = event.ok()?;
        if search.event(&event, span.start.line()) {
            break;
        }
    }
    search.line
}

struct Search<'p> {
    path: &'p [&'p str],
    document: usize,
    seen: usize,
    /// True if the document contains only a null, so that it does not count.
    is_empty: bool,
    open: Vec<OpenPlace>,
    line: Option<usize>,
}

impl Search<'_> {
    /// Takes note of an event. True if what follows does not matter.
    fn event(&mut self, event: &Event<'_>, line: usize) -> bool {
        match event {
            Event::DocumentStart(_) => self.is_empty = true,
            Event::DocumentEnd if !self.is_empty => {
                self.seen += 1;
                return self.seen > self.document;
            }
            Event::Scalar(text, style, ..) => {
                // A document that is one scalar counts unless it is null.
                self.is_empty &= *style == ScalarStyle::Plain
                    && super::plain_json(text).is_some_and(|json| json == "null");
                if self.is_key() {
                    self.key(text, line);
                } else {
                    self.value(line);
                }
            }
            Event::Alias(_) => {
                self.value(line);
            }
            Event::SequenceStart(..) => self.begin(false, line),
            Event::MappingStart(..) => self.begin(true, line),
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
            }
            _ => {}
        }
        false
    }

    fn is_key(&self) -> bool {
        let open = self.open.last();
        open.is_some_and(|open| open.is_object && open.count % 2 == 0)
    }

    fn key(&mut self, text: &str, line: usize) {
        let wanted = self.open.len().checked_sub(1);
        let wanted = wanted.and_then(|index| self.path.get(index));
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
            open.is_key_on_way = open.is_on_way && wanted.is_some_and(|wanted| *wanted == text);
            if open.is_key_on_way && self.seen == self.document {
                self.line = Some(line);
            }
        }
    }

    /// Takes note of a value. True if it is on the way.
    fn value(&mut self, line: usize) -> bool {
        let wanted = self.open.len().checked_sub(1);
        let wanted = wanted.and_then(|index| self.path.get(index));
        let is_on_way = match self.open.last_mut() {
            None => true,
            Some(open) if open.is_object => {
                open.count += 1;
                // The line of its key is kept.
                return open.is_key_on_way;
            }
            Some(open) => {
                let index = open.count;
                open.count += 1;
                open.is_on_way && wanted.is_some_and(|wanted| wanted.parse() == Ok(index))
            }
        };
        if is_on_way && self.seen == self.document {
            self.line = Some(line);
        }
        is_on_way
    }

    fn begin(&mut self, is_object: bool, line: usize) {
        self.is_empty = false;
        let is_on_way = self.value(line) && self.seen == self.document;
        self.open.push(OpenPlace {
            is_object,
            count: 0,
            is_on_way,
            is_key_on_way: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn values_are_found_by_their_path() {
        let text = "---\n# empty\n---\na: 1\nb:\n- x: [1, 2]\n- {y: 3,\n  z: 4}\n---\nb:\n  c:\n    d: 5\n";
        for (document, path, line) in [
            (0, &["a"][..], Some(4)),
            (0, &["b"], Some(5)),
            (0, &["b", "0", "x", "1"], Some(6)),
            (0, &["b", "1", "y"], Some(7)),
            (0, &["b", "1", "z"], Some(8)),
            // What is not written is looked for where it would be.
            (0, &["b", "1", "none"], Some(7)),
            (0, &["none"], Some(4)),
            (1, &["b", "c", "d"], Some(12)),
            (1, &[], Some(10)),
            (2, &["a"], None),
        ] {
            assert_eq!(line_of(text, document, path), line, "{document} {path:?}");
        }
        let json = "\u{feff}{\n  \"items\": [\n    {\"a\": 1},\n    {\"a\": {\"b\": []}}\n  ]\n}";
        assert_eq!(line_of(json, 0, &["items", "1", "a", "b"]), Some(4));
        assert_eq!(line_of("[", 0, &["a"]), None);
    }
}
