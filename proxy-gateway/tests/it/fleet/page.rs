//! The files of the page.

const PAGE: &str = include_str!("../../../../docs/scale.md");

/// Returns a file of the page with other addresses and paths. Each text to change must be in it.
pub(crate) fn file(name: &str, changes: &[(&str, &str)]) -> String {
    let (_, after) = PAGE
        .split_once(&format!("\n`{name}`:\n\n```"))
        .unwrap_or_else(|| panic!("the page has no `{name}`"));
    let (_, text) = after.split_once('\n').expect("a block has lines");
    let (text, _) = text.split_once("\n```").expect("a block has an end");
    let mut text = format!("{text}\n");
    for (from, to) in changes {
        assert!(text.contains(from), "`{name}` does not say `{from}`");
        text = text.replace(from, to);
    }
    text
}
