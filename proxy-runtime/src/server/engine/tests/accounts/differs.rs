//! Where ways differ from what should be: that is meant, or until it is mended.

use std::collections::BTreeSet;

use super::play::Way;

/// A scene, the ways on which it does not end as it should, and the fields in which that shows; and why, above.
const DIFFERS: &str = "
# To look once more than is needed would cost each response a system call.
an end behind the head | bytes | answer, server series, log status, log outcome, log sent
";

/// The scenes of which something is known.
pub(super) fn scenes() -> impl Iterator<Item = &'static str> {
    rows().map(|(scene, ..)| scene)
}

/// What is known of a scene: ways and fields.
pub(super) fn of(scene: &str, ways: &[Way]) -> BTreeSet<(&'static str, &'static str)> {
    let known = rows().filter(|(name, ..)| *name == scene);
    known
        .flat_map(|(_, on, fields)| {
            let on = on.split(", ");
            on.flat_map(move |way| fields.split(", ").map(move |field| (way, field)))
        })
        .filter(|(way, _)| ways.iter().any(|there| there.name == *way))
        .collect()
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = DIFFERS.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<_> = row.split(" | ").collect();
        match *cells {
            [scene, ways, fields] => (scene, ways, fields),
            _ => panic!("{row}"),
        }
    })
}
