//! Tests that the pages name.

use crate::docs::markdown::code;
use crate::docs::{page, root};

#[test]
fn every_fault_names_a_test_that_there_is() {
    let page = page("operate.md");
    let table = page.table("Faults that are tested", "fault");
    let column = table.column("test");
    let counts = ["failed before", "fail now"].map(|name| table.column(name));
    assert!(table.rows.len() > 20, "{} faults", table.rows.len());
    for row in &table.rows {
        for count in counts {
            assert!(!row[count].is_empty(), "{row:?}");
        }
        let cell = &row[column];
        let names = code(cell);
        assert_eq!(names.len(), 1, "{cell}");
        let (_, link) = cell.split_once("](../").expect("it is a link");
        let path = root().join(link.trim_end_matches(')'));
        let source = std::fs::read_to_string(&path);
        let source = source.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let test = format!("fn {}()", names[0]);
        assert!(source.contains(&test), "{} has no `{test}`", path.display());
    }
}
