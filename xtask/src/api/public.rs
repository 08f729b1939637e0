//! The public items of a library, one a line.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::{Listed, Pages, RENEW};

/// The maximum number of public items by library. Fields, variants and re-exports of other crates do
/// not count. The forwarder, the server and the admin API have most; explanations, traces, extension points, causes,
/// session affinity, client certificates by server name, look-ups for resolvers, connectors, pages of
/// errors, policies and access to the admin page have the rest.
const MOST: [(&str, usize); 1] = [("proxy-runtime", 391)];

/// The folder of the lists, which holds nothing else.
pub(super) const DIRECTORY: &str = "xtask/public-api";

/// Libraries without a list: what they show is generated.
const GENERATED: [&str; 1] = ["xds-types"];

/// Kinds of items that count.
const COUNTED: [&str; 9] = [
    "const", "enum", "fn", "macro", "static", "struct", "trait", "type", "union",
];

/// The lines of a list, each a kind and a path: `fn proxy_model::Snapshot::empty`.
type Lines = BTreeSet<String>;

/// The checked-in lists of the libraries, and what they have to be.
pub(super) fn lists(pages: &Pages) -> crate::Result<Vec<Listed>> {
    let written = pages.iter();
    let written = written.filter(|(library, _)| !GENERATED.contains(&library.as_str()));
    written.map(|(library, page)| list(library, page)).collect()
}

fn list(library: &str, page: &Value) -> crate::Result<Listed> {
    let lines = public(page)?;
    let mut text = format!(
        "# Public items of {library}, {} besides fields, variants and what is passed on from other crates. `cargo xtask\n\
         # public-api` compares, and with `--renew` writes this file.\n\n",
        count(&lines)
    );
    for line in &lines {
        let _ = writeln!(text, "{line}");
    }
    Ok(Listed {
        place: Path::new(DIRECTORY).join(format!("{library}.txt")),
        text,
    })
}

/// The number of items of all libraries.
///
/// # Errors
///
/// A library has more than it may have.
pub(super) fn check_sizes(pages: &Pages) -> crate::Result<usize> {
    let mut all = 0;
    for (library, page) in pages {
        let count = count(&public(page)?);
        let most = MOST.iter().find(|(name, _)| name == library);
        if let Some((_, most)) = most
            && count > *most
        {
            return Err(format!(
                "{library} shows {count} public items, and may show {most}: hide what nobody outside needs, with `pub(crate)` or \
                 behind a feature, then `cargo {RENEW}`"
            )
            .into());
        }
        all += count;
    }
    Ok(all)
}

fn count(lines: &Lines) -> usize {
    let kind = |line: &&String| line.split(' ').next().unwrap_or_default().to_owned();
    lines
        .iter()
        .filter(|line| COUNTED.contains(&kind(line).as_str()))
        .count()
}

/// The public items that rustdoc shows of a library.
fn public(page: &Value) -> crate::Result<Lines> {
    let index = page["index"]
        .as_object()
        .ok_or("rustdoc's JSON has no index")?;
    let mut found = Found {
        index,
        lines: Lines::new(),
        inside: Vec::new(),
    };
    let root = found.get(&page["root"]).ok_or("there is no root")?;
    found.module(root, root["name"].as_str().unwrap_or_default());
    Ok(found.lines)
}

/// Public items, while they are gathered.
struct Found<'a> {
    index: &'a Map<String, Value>,
    lines: Lines,
    /// Modules that are being passed on as a whole, so that two that pass on each other come to an end.
    inside: Vec<&'a Value>,
}

impl<'a> Found<'a> {
    fn get(&self, id: &Value) -> Option<&'a Value> {
        self.index.get(&id.to_string())
    }

    /// The items of these numbers that are there: hidden ones are not.
    fn all(&self, ids: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let index = self.index;
        let ids = ids.as_array().into_iter().flatten();
        ids.filter_map(move |id| index.get(&id.to_string()))
    }

    fn add(&mut self, kind: &str, path: &str) {
        self.lines.insert(format!("{kind} {path}"));
    }

    fn module(&mut self, module: &'a Value, path: &str) {
        for item in self.all(&module["inner"]["module"]["items"]) {
            if item["visibility"] == "public" {
                self.item(item, None, path);
            }
        }
    }

    /// Adds an item of a module, by `name` if it is passed on by that.
    fn item(&mut self, item: &'a Value, name: Option<&str>, path: &str) {
        let Some((kind, inner)) = item["inner"]
            .as_object()
            .and_then(|inner| inner.iter().next())
        else {
            return;
        };
        if kind == "use" {
            return self.passed_on(inner, path);
        }
        let own = item["name"].as_str().unwrap_or_default();
        let path = format!("{path}::{}", name.unwrap_or(own));
        match kind.as_str() {
            "module" => self.module(item, &path),
            "struct" | "union" => {
                self.add(kind, &path);
                self.fields(&inner["kind"]["plain"]["fields"], &path);
                self.fields(&inner["kind"]["tuple"], &path);
                self.fields(&inner["fields"], &path);
                self.implemented(&inner["impls"], &path);
            }
            "enum" => {
                self.add(kind, &path);
                for variant in self.all(&inner["variants"]) {
                    let name = variant["name"].as_str().unwrap_or_default();
                    self.add("variant", &format!("{path}::{name}"));
                }
                self.implemented(&inner["impls"], &path);
            }
            "trait" => {
                self.add(kind, &path);
                self.members(&inner["items"], &path, |_| true);
            }
            "function" => self.add("fn", &path),
            "constant" => self.add("const", &path),
            "type_alias" => self.add("type", &path),
            "static" => self.add("static", &path),
            "macro" | "proc_macro" => self.add("macro", &path),
            other => self.add(other, &path),
        }
    }

    /// Adds what `pub use` shows in a module: an item of this library under its new name, or the name of a foreign one.
    fn passed_on(&mut self, passed: &'a Value, path: &str) {
        match self.get(&passed["id"]) {
            Some(module) if passed["is_glob"] == true => {
                if !self.inside.contains(&module) {
                    self.inside.push(module);
                    self.module(module, path);
                    self.inside.pop();
                }
            }
            Some(item) => self.item(item, passed["name"].as_str(), path),
            None => {
                let name = passed["name"].as_str().unwrap_or_default();
                self.add("use", &format!("{path}::{name}"));
            }
        }
    }

    fn fields(&mut self, ids: &'a Value, path: &str) {
        for field in self.all(ids) {
            if field["visibility"] == "public" {
                let name = field["name"].as_str().unwrap_or_default();
                self.add("field", &format!("{path}::{name}"));
            }
        }
    }

    /// Adds what implementations that are of no trait give.
    fn implemented(&mut self, ids: &'a Value, path: &str) {
        for of_type in self.all(ids) {
            let implementation = &of_type["inner"]["impl"];
            if implementation["trait"].is_null() {
                self.members(&implementation["items"], path, |item| {
                    item["visibility"] == "public"
                });
            }
        }
    }

    fn members(&mut self, ids: &'a Value, path: &str, is_shown: impl Fn(&Value) -> bool) {
        for item in self.all(ids).filter(|item| is_shown(item)) {
            let name = item["name"].as_str().unwrap_or_default();
            let inner = &item["inner"];
            let kind = match () {
                () if inner["assoc_const"].is_object() => "const",
                () if inner["assoc_type"].is_object() => "type",
                () => "fn",
            };
            self.add(kind, &format!("{path}::{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A library with a module that is passed on in three ways.
    fn page() -> Value {
        let item = |name: &str, inner: Value| json!({"name": name, "visibility": "public", "inner": inner});
        let private = |name: &str, inner: Value| json!({"name": name, "visibility": "default", "inner": inner});
        json!({
            "root": 0,
            "index": {
                "0": item("a", json!({"module": {"items": [1, 2, 3, 4, 5, 99]}})),
                "1": private("inner", json!({"module": {"items": [10, 11]}})),
                "2": {"name": null, "visibility": "public",
                      "inner": {"use": {"source": "inner::Limits", "name": "Bounds", "id": 10, "is_glob": false}}},
                "3": {"name": null, "visibility": "public",
                      "inner": {"use": {"source": "bytes::Bytes", "name": "Bytes", "id": 500, "is_glob": false}}},
                "4": item("all", json!({"module": {"items": [6]}})),
                "5": item("Pick", json!({"trait": {"items": [20, 21], "implementations": []}})),
                "6": {"name": null, "visibility": "public",
                      "inner": {"use": {"source": "inner", "name": "inner", "id": 1, "is_glob": true}}},
                "10": item("Limits", json!({"struct": {"kind": {"plain": {"fields": [12, 13]}}, "impls": [14, 15]}})),
                "11": item("Kind", json!({"enum": {"variants": [16], "impls": []}})),
                "12": item("bytes", json!({"struct_field": {}})),
                "13": private("secret", json!({"struct_field": {}})),
                "14": private("", json!({"impl": {"trait": null, "items": [17, 18, 19]}})),
                "15": private("", json!({"impl": {"trait": {"path": "Default", "id": 501}, "items": [22]}})),
                "16": private("Many", json!({"variant": {}})),
                "17": item("new", json!({"function": {}})),
                "18": private("own", json!({"function": {}})),
                "19": item("MOST", json!({"assoc_const": {}})),
                "20": private("pick", json!({"function": {}})),
                "21": private("Of", json!({"assoc_type": {}})),
                "22": private("default", json!({"function": {}}))
            }
        })
    }

    #[test]
    fn items_are_listed_where_others_find_them() {
        let lines = public(&page()).expect("it has an index");
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(
            lines,
            [
                "const a::Bounds::MOST",
                "const a::all::Limits::MOST",
                "enum a::all::Kind",
                "field a::Bounds::bytes",
                "field a::all::Limits::bytes",
                "fn a::Bounds::new",
                "fn a::Pick::pick",
                "fn a::all::Limits::new",
                "struct a::Bounds",
                "struct a::all::Limits",
                "trait a::Pick",
                "type a::Pick::Of",
                "use a::Bytes",
                "variant a::all::Kind::Many",
            ]
        );
    }

    #[test]
    fn what_is_no_item_by_itself_does_not_count() {
        let listed = list("a", &page()).expect("it has an index");
        assert_eq!(listed.place.to_str(), Some("xtask/public-api/a.txt"));
        assert!(listed.text.starts_with("# Public items of a, 10 besides"));
    }

    #[test]
    fn a_library_that_grows_beyond_its_limit_fails() {
        let (library, most) = MOST[0];
        let with = |count: usize| {
            let mut index = Map::new();
            let ids: Vec<_> = (1..=count).collect();
            for id in &ids {
                let item = json!({"name": format!("f{id}"), "visibility": "public", "inner": {"function": {}}});
                index.insert(id.to_string(), item);
            }
            let root =
                json!({"name": "a", "visibility": "public", "inner": {"module": {"items": ids}}});
            index.insert("0".to_owned(), root);
            check_sizes(&Pages::from([(
                library.to_owned(),
                json!({"root": 0, "index": index}),
            )]))
        };
        assert_eq!(with(most).expect("it may have as many"), most);
        let error = with(most + 1).expect_err("it is one too many").to_string();
        assert!(error.contains("cargo xtask public-api --renew"), "{error}");
    }

    #[test]
    fn a_page_without_items_is_an_error() {
        assert!(public(&Value::default()).is_err());
    }
}
