//! Known differences between the paths, intended or not fixed yet.

use std::collections::BTreeSet;

use super::play::Way;

/// Scenes with the paths on which they do not end as expected, and the fields that differ; the reason stands above.
const DIFFERS: &str = "
";

/// The scenes with known differences.
pub(super) fn scenes() -> impl Iterator<Item = &'static str> {
    rows().map(|(scene, ..)| scene)
}

/// The known differences of a scene: paths and fields.
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
