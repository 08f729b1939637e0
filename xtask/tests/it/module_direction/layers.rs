//! The order of the top-level modules, as the crate's documentation lists it.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Expr, Lit, Meta};

use crate::module_direction::tree::{Use, folder};

/// The heading of the list.
const HEADING: &str = "# Layers";

/// The number of the layer of each module, from the leaves up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layers {
    of: BTreeMap<String, usize>,
    twice: Vec<String>,
}

impl Layers {
    /// Reads the numbered list below the heading in the documentation of a crate.
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let documentation = attributes.iter().filter_map(documentation);
        let lines: Vec<_> = documentation.map(|line| line.trim().to_owned()).collect();
        let mut layers = Self::default();
        let list = lines.iter().skip_while(|line| *line != HEADING).skip(1);
        for line in list.take_while(|line| !line.starts_with('#')) {
            let Some((number, rest)) = line.split_once(". ") else {
                continue;
            };
            let Ok(number) = number.parse() else {
                continue;
            };
            // Names precede the colon; every second piece is between backticks.
            let names = rest.split(':').next().unwrap_or(rest);
            for name in names.split('`').skip(1).step_by(2) {
                if layers.of.insert(name.to_owned(), number).is_some() {
                    layers.twice.push(name.to_owned());
                }
            }
        }
        layers
    }
}

fn documentation(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    let Expr::Lit(value) = &pair.value else {
        return None;
    };
    match &value.lit {
        Lit::Str(text) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

/// Returns the errors of the list, and each use that goes up or sideways.
pub(crate) fn complaints(
    layers: &Layers,
    modules: &BTreeSet<String>,
    uses: &BTreeSet<Use>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in &layers.twice {
        wrong.push(format!("`{name}` stands twice under \"Layers\" in lib.rs"));
    }
    for name in modules.iter().filter(|name| !layers.of.contains_key(*name)) {
        wrong.push(format!(
            "`{name}` has no place in the list under \"Layers\" in lib.rs"
        ));
    }
    for name in layers.of.keys().filter(|name| !modules.contains(*name)) {
        wrong.push(format!(
            "`{name}` stands under \"Layers\" in lib.rs and is no module"
        ));
    }
    for Use { from, to, path } in uses {
        let (user, used) = (folder(from), folder(to));
        let (Some(above), Some(below)) = (layers.of.get(user), layers.of.get(used)) else {
            continue;
        };
        if user != used && above <= below {
            wrong.push(format!(
                "{from} names `{path}` of {to}: `{user}` (layer {above}) must not know `{used}` (layer {below})"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Layers {
        Layers::of(&syn::parse_file(text).expect("the text is Rust").attrs)
    }

    fn modules(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    const LIST: &str = "//! # Other\n//! 9. `z`\n//!\n//! # Layers\n//!\n//! 1. `a`, `b`: leaves, not `x`\n//! 2. `c`\n//!\n//! # More\n//! 3. `d`\n";

    #[test]
    fn the_list_is_read_between_its_heading_and_the_next() {
        let of = [("a", 1), ("b", 1), ("c", 2)].map(|(name, layer)| (name.to_owned(), layer));
        assert_eq!(listed(LIST).of, BTreeMap::from(of));
    }

    #[test]
    fn the_list_has_each_module_once_and_no_other() {
        let none = BTreeSet::new();
        let twice = format!("{LIST}//! # Layers\n").replace("2. `c`", "2. `a`");
        assert_eq!(
            complaints(&listed(&twice), &modules(&["a", "c"]), &none),
            [
                "`a` stands twice under \"Layers\" in lib.rs",
                "`c` has no place in the list under \"Layers\" in lib.rs",
                "`b` stands under \"Layers\" in lib.rs and is no module",
            ]
        );
    }

    #[test]
    fn modules_of_one_layer_do_not_know_one_another() {
        let one = Use {
            from: "a/x.rs".to_owned(),
            to: "b.rs".to_owned(),
            path: "crate::b::B".to_owned(),
        };
        assert_eq!(
            complaints(
                &listed(LIST),
                &modules(&["a", "b", "c"]),
                &BTreeSet::from([one])
            ),
            ["a/x.rs names `crate::b::B` of b.rs: `a` (layer 1) must not know `b` (layer 1)"]
        );
    }
}
