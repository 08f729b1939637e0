//! The cases of YARP's behaviour: each has a test, or a reason why it needs none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const CASES: &str = include_str!("../data/yarp-cases.txt");

/// Number of cases. One that is taken out of the table would not be missed otherwise.
const COUNT: usize = 339;

#[test]
fn every_case_of_yarp_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = BTreeMap::new();
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let Some((id, rest)) = line.split_once(' ') else {
            wrong.push(format!("{line}: no place"));
            continue;
        };
        if !ids.insert(id) {
            wrong.push(format!("{id}: twice"));
        }
        if let Some(reason) = rest.strip_prefix('-') {
            if reason.trim().is_empty() {
                wrong.push(format!("{id}: no reason"));
            }
            continue;
        }
        let place = rest.split(' ').next().unwrap_or_default();
        let Some((file, test)) = place.split_once("::") else {
            wrong.push(format!("{id}: `{place}` is no test"));
            continue;
        };
        let source = files
            .entry(file)
            .or_insert_with(|| std::fs::read_to_string(root.join(file)).unwrap_or_default());
        if !has_test(source, test) {
            wrong.push(format!("{id}: {file} has no test `{test}`"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(ids.len(), COUNT);
}

/// Returns true if a file has a function of this name with an attribute that makes it a test.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let declared = [format!("fn {name}("), format!("async fn {name}(")];
    lines.iter().enumerate().any(|(at, line)| {
        let is_it = declared.iter().any(|declared| line.starts_with(declared));
        let mut above = lines[..at].iter().rev();
        is_it
            && above
                .by_ref()
                .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
                .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn a_helper_is_no_test() {
    let source = "#[test]\nfn a() {}\n\nfn b() {}\n#[tokio::test(start_paused = true)]\n/// c\nasync fn c() {}\n";
    let found = ["a", "b", "c", "d"].map(|name| has_test(source, name));
    assert_eq!(found, [true, false, true, false]);
}
