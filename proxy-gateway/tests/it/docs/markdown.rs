//! A parser for the Markdown of the pages: headings, tables, fenced blocks and code in the text.

use std::path::Path;

/// One page.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) tables: Vec<Table>,
}

/// A fenced block.
pub(crate) struct Block {
    /// The info string of the fence: `json config`.
    pub(crate) info: String,
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A table.
pub(crate) struct Table {
    /// The heading above the table.
    pub(crate) heading: String,
    /// The place in the last line `` Place: `…` `` under that heading.
    pub(crate) place: Option<String>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Page {
    pub(crate) fn read(root: &Path, path: &str) -> Self {
        let text = std::fs::read_to_string(root.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut page = Self {
            path: path.to_owned(),
            text: text.clone(),
            blocks: Vec::new(),
            tables: Vec::new(),
        };
        page.parse(&text);
        page
    }

    fn parse(&mut self, text: &str) {
        let mut heading = String::new();
        let mut place = None;
        let mut lines = (1..).zip(text.lines()).peekable();
        while let Some((number, line)) = lines.next() {
            if let Some(info) = line.strip_prefix("```") {
                let inside = lines.by_ref().map(|(_, line)| line);
                let inside: Vec<_> = inside.take_while(|line| *line != "```").collect();
                self.blocks.push(Block {
                    info: info.to_owned(),
                    text: inside.join("\n"),
                    line: number,
                });
            } else if line.starts_with('#') {
                heading = line.trim_start_matches('#').trim().to_owned();
                place = None;
            } else if let Some(rest) = line.strip_prefix("Place: ") {
                place = code(rest).first().map(|place| (*place).to_owned());
            } else if line.starts_with('|') {
                let mut rows = vec![cells(line)];
                while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with('|')) {
                    rows.push(cells(line));
                }
                let header = rows.remove(0);
                assert!(
                    rows.iter().all(|row| row.len() == header.len()),
                    "{}:{number}: the rows of the table differ in length",
                    self.path
                );
                self.tables.push(Table {
                    heading: heading.clone(),
                    place: place.clone(),
                    header,
                    // The first is the line below the header.
                    rows: rows.split_off(1),
                });
            }
        }
    }

    /// Returns the table under `heading` whose first column is called `first`.
    pub(crate) fn table(&self, heading: &str, first: &str) -> &Table {
        let mut found = self
            .tables
            .iter()
            .filter(|table| table.heading == heading && table.header[0] == first);
        let table = found.next();
        assert!(found.next().is_none(), "there are two such tables");
        table.unwrap_or_else(|| panic!("{}: no table `{first}` under `{heading}`", self.path))
    }
}

impl Table {
    /// Returns the index of the column `name`.
    pub(crate) fn column(&self, name: &str) -> usize {
        let found = self.header.iter().position(|header| header == name);
        found.unwrap_or_else(|| panic!("no column `{name}` under `{}`", self.heading))
    }
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut().expect("there is one from the start");
        match character {
            '\\' if characters.next_if_eq(&'|').is_some() => cell.push('|'),
            '|' => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Returns the texts between backticks.
pub(crate) fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn tables_and_blocks_are_found() {
    let mut page = Page {
        path: String::new(),
        text: String::new(),
        blocks: Vec::new(),
        tables: Vec::new(),
    };
    page.parse(
        "# A\n\nPlace: `/x`\n\n| k | v |\n|---|---|\n| `a`, `b\\|c` | 1 |\n\n## B\n```json x\n| no | table |\n```\n| k |\n|---|\n",
    );
    let table = page.table("A", "k");
    assert_eq!(table.place.as_deref(), Some("/x"));
    assert_eq!(table.rows, [["`a`, `b|c`", "1"]]);
    assert_eq!(code(&table.rows[0][0]), ["a", "b|c"]);
    assert_eq!(page.table("B", "k").place, None);
    assert!(page.table("B", "k").rows.is_empty());
    assert_eq!(page.blocks[0].info, "json x");
    assert_eq!(page.blocks[0].text, "| no | table |");
}
