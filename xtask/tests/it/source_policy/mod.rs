//! Rules for every file of the project: short sources, working links, pages and comments in plain
//! words, and no text that is true on one machine only.

mod comments;
mod lengths;
mod links;
mod maxima;
mod pages;
mod texts;
mod tree;
mod type_names;
mod words;

use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("xtask lies in the root").to_owned()
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn source_files_are_short() {
    let mut complaints = Vec::new();
    let mut seen = 0;
    tree::each_text(&root(), &mut |path, text| {
        seen += usize::from(path.ends_with(".rs"));
        complaints.extend(lengths::complaint(path, text));
    });
    assert!(
        seen > 10,
        "only {seen} source files found: the walk is broken"
    );
    assert_none(&complaints);
}

#[test]
fn a_name_has_one_meaning_in_a_crate() {
    let mut types = type_names::Types::default();
    tree::each_text(&root(), &mut |path, text| types.add(path, text));
    assert!(
        types.len() > 1000,
        "only {} types found: the walk is broken",
        types.len()
    );
    assert_none(&types.complaints());
}

#[test]
fn no_text_names_a_registry_host_or_a_place_on_somebodys_machine() {
    let places = texts::Places::of_this_machine(&root());
    let mut complaints = Vec::new();
    tree::each_text(&root(), &mut |path, text| {
        complaints.extend(texts::complaints(path, text, &places));
    });
    assert_none(&complaints);
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut complaints = Vec::new();
    let mut seen = 0;
    tree::each_text(&root, &mut |path, text| {
        seen += usize::from(path.ends_with(".md"));
        complaints.extend(links::complaints(&root, path, text));
    });
    assert!(seen > 10, "only {seen} pages found: the walk is broken");
    assert_none(&complaints);
}

#[test]
fn pages_open_with_their_purpose_and_use_plain_words() {
    let mut complaints = Vec::new();
    let mut words = pages::Words::new();
    let mut seen = 0;
    tree::each_text(&root(), &mut |path, text| {
        if pages::is_page(path) {
            seen += 1;
            complaints.extend(pages::complaints(path, text));
            words.add(path, text);
        }
    });
    assert!(seen > 20, "only {seen} pages found: the walk is broken");
    complaints.extend(words.complaints());
    assert_none(&complaints);
}

#[test]
fn comments_use_plain_words() {
    let mut found = maxima::Found::default();
    let mut documentation = 0;
    let (mut inside, mut code) = (0_u32, 0_u32);
    tree::each_text(&root(), &mut |path, text| {
        if !path.ends_with(".rs") {
            return;
        }
        let comments = comments::read(text);
        documentation += comments.documentation;
        found.add(path, &comments.findings);
        if path.starts_with("proxy-runtime/src/") {
            inside += comments.inside;
            code += comments.code;
        }
    });
    assert!(
        documentation > 1000 && code > 1000,
        "only {documentation} documentation comments and {code} lines of the runtime found: the walk is broken"
    );
    let file = root().join("xtask/tests/data/words.txt");
    let text = std::fs::read_to_string(&file).expect("the maxima are checked in");
    let mut maxima = maxima::Maxima::parse(&text).unwrap_or_else(|e| panic!("words.txt: {e}"));
    if std::env::var_os("UPDATE_WORDS").is_some() {
        maxima = maxima.lowered(&found);
        std::fs::write(&file, maxima.text()).expect("the maxima can be written");
    }
    // Printed only: branches that lower the same number must not fail each other.
    for line in maxima.slack(&found) {
        println!(
            "{line}: lower xtask/tests/data/words.txt by running this test with UPDATE_WORDS=1"
        );
    }
    println!(
        "proxy-runtime/src has {:.1} lines of comments inside items per 100 lines of code",
        100.0 * f64::from(inside) / f64::from(code)
    );
    assert_none(&maxima.exceeded(&found));
}

#[test]
fn the_tasks_of_operators_are_two_clicks_from_the_readme() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is a page");
    assert!(read("README.md").contains("](docs/README.md)"));
    let missing = pages::tasks_without_a_link(&read("docs/README.md"));
    assert!(
        missing.is_empty(),
        "docs/README.md has no link for {missing:?}"
    );
}
