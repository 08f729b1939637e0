//! The check that the files in the repository are those that the generator writes.

use xds_types_generator::{directory, generate, read};

#[test]
fn the_generated_files_are_current() {
    let wanted = generate().unwrap();
    let found = read(&directory()).unwrap();
    let names = wanted.keys().chain(found.keys());
    let different: std::collections::BTreeSet<_> = names
        .filter(|name| wanted.get(*name) != found.get(*name))
        .collect();
    assert!(
        different.is_empty(),
        "these files of xds-types/src/pb are out of date: {different:?}; renew them by `cargo run -p xds-types-generator`"
    );
}
