//! The tables of `docs/conformance.md`, checked and renewed.

use std::collections::BTreeSet;
use std::path::Path;

use parking_lot::Mutex;

/// The lock for writing the document, since tests run concurrently.
static WRITING: Mutex<()> = Mutex::new(());

/// The command that rewrites the tables.
const REFRESH: &str =
    "UPDATE_CONFORMANCE=1 cargo test -p servicefabric-emulator --test it clients::table";

/// Compares the calls of a client with those in its part of the document.
///
/// A part lies between two comments, with one row for each first word: `| application | create, delete, … |`.
pub(super) fn compare(client: &str, called: &BTreeSet<String>) {
    if std::env::var_os("ONLY").is_some_and(|only| !only.is_empty()) {
        return;
    }
    let _writing = WRITING.lock();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/conformance.md");
    let text = std::fs::read_to_string(&path).expect("the document is there");
    let begin = format!("<!-- {client}: called -->\n");
    let end = format!("<!-- {client}: end -->\n");
    let (before, rest) = text.split_once(&begin).expect("its part begins");
    let (found, after) = rest.split_once(&end).expect("its part ends");
    let expected = table(called);
    if std::env::var_os("UPDATE_CONFORMANCE").is_some() {
        let text = format!("{before}{begin}{expected}{end}{after}");
        std::fs::write(&path, text).expect("the document can be written");
        return;
    }
    assert_eq!(
        found, expected,
        "docs/conformance.md tells of other calls of {client} than were made: `{REFRESH}`"
    );
}

fn table(called: &BTreeSet<String>) -> String {
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for call in called {
        // `application list` of the program, `get_application_info_list` of the library.
        let (first, rest) = call
            .split_once([' ', '_'])
            .unwrap_or((call.as_str(), "(itself)"));
        match rows.last_mut() {
            Some((last, calls)) if *last == first => calls.push(rest),
            _ => rows.push((first, vec![rest])),
        }
    }
    let mut table = String::from("| First word | What follows it |\n|---|---|\n");
    for (first, calls) in rows {
        table.push_str(&format!("| {first} | {} |\n", calls.join(", ")));
    }
    table
}
