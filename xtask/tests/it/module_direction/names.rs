//! The names that one module defines, imports and mentions, without its tests.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Macro, Meta, UseTree, Visibility};

/// Segments of a path: `crate`, `forward`, `Forwarded`.
pub(crate) type Segments = Vec<String>;

/// A name that a `use` brings into a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The name in the module; `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) path: Segments,
    /// True if other modules can use it (`pub use`).
    pub(crate) shared: bool,
}

/// A module inside a module.
pub(crate) struct Child {
    pub(crate) name: String,
    /// The items of `mod name { … }`; `None` for `mod name;`.
    pub(crate) inline: Option<Names>,
}

/// The names of a module.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) defined: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: BTreeSet<Segments>,
    pub(crate) children: Vec<Child>,
}

impl Names {
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut names = Self::default();
        for item in items {
            if is_test_only(attributes_of(item)) {
                continue;
            }
            if let Some(name) = defined_by(item) {
                names.defined.insert(name);
            }
            if let Item::Macro(call) = item {
                names.defined.extend(types_in(call.mac.tokens.clone()));
            }
            names.visit_item(item);
        }
        names
    }

    fn mention(&mut self, path: Segments) {
        self.mentions.insert(path);
    }

    fn import(&mut self, mut at: Segments, tree: &UseTree, shared: bool) {
        let mut add = |name, path| self.imports.push(Import { name, path, shared });
        match tree {
            UseTree::Path(tree) => {
                at.push(tree.ident.to_string());
                self.import(at, &tree.tree, shared);
            }
            UseTree::Name(tree) => {
                let mut name = tree.ident.to_string();
                if name == "self" {
                    name = at.last().cloned().unwrap_or_default();
                } else {
                    at.push(name.clone());
                }
                add(Some(name), at);
            }
            UseTree::Rename(tree) => {
                if tree.ident != "self" {
                    at.push(tree.ident.to_string());
                }
                add(Some(tree.rename.to_string()), at);
            }
            UseTree::Glob(_) => add(None, at),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(at.clone(), tree, shared);
                }
            }
        }
    }

    /// Paths in the tokens of a macro, which cannot be parsed without its definition.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut path: Segments = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.mention(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            colons = 0;
            self.mention(std::mem::take(&mut path));
        }
        self.mention(path);
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(attributes_of(item)) {
            return;
        }
        match item {
            Item::Use(ItemUse { vis, tree, .. }) => {
                let shared = !matches!(vis, Visibility::Inherited);
                self.import(Vec::new(), tree, shared);
            }
            Item::Mod(module) => self.children.push(Child {
                name: module.ident.to_string(),
                inline: module.content.as_ref().map(|(_, items)| Self::of(items)),
            }),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_test_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !is_test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if !is_test_only(&call.attrs) {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.mention(segments.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    // Documentation and visibility name modules without depending on them.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Returns true if an item is compiled for unit tests only.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
    })
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined_by(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Types that a macro is given, such as those of `pin_project!`.
fn types_in(tokens: proc_macro2::TokenStream) -> Vec<String> {
    use proc_macro2::TokenTree;
    let mut names = Vec::new();
    let mut is_type = false;
    for token in tokens {
        if let TokenTree::Ident(ident) = token {
            if is_type {
                names.push(ident.to_string());
            }
            is_type = ident == "struct" || ident == "enum";
        } else {
            is_type = false;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_a_macro_is_given_are_defined() {
        let text =
            "pin_project! { /// Doc.\n pub(crate) struct A<T> { #[pin] b: T } } m! { f(struct_) }";
        let defined: Vec<_> = names(text).defined.into_iter().collect();
        assert_eq!(defined, ["A"]);
    }

    fn names(text: &str) -> Names {
        Names::of(&syn::parse_file(text).expect("the text is Rust").items)
    }

    fn mentions(text: &str, path: &str) -> bool {
        let path: Segments = path.split("::").map(str::to_owned).collect();
        names(text).mentions.contains(&path)
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        for text in [
            "fn f(a: crate::a::B) {}",
            "fn f() -> Vec<Option<crate::a::B>> {}",
            "fn f() { crate::a::B; }",
            "fn f() { let x = y(|z| crate::a::B { z }); }",
            "fn f() { match x { crate::a::B(..) => {} } }",
            "impl crate::a::B for C {}",
            "impl<T: crate::a::B> C<T> {}",
            "fn f() { assert!(matches!(x, crate::a::B)); }",
            "macro_rules! m { () => { f($crate::a::B) } }",
        ] {
            assert!(mentions(text, "crate::a::B"), "{text}");
        }
    }

    #[test]
    fn documentation_visibility_and_tests_do_not_count() {
        for text in [
            "/// See [`crate::a::B`].\nstruct A;",
            "pub(in crate::a::B) struct A;",
            "#[cfg(test)] fn f() { crate::a::B; }",
            "#[cfg(all(test, feature = \"server\"))] fn f() { crate::a::B; }",
            "impl A { #[cfg(test)] fn f() { crate::a::B; } }",
            "enum A { #[cfg(test)] B(crate::a::B) }",
            "fn f() { #[cfg(test)] crate::a::B(); }",
            "#[cfg(test)] mod tests { fn f() { crate::a::B; } }",
        ] {
            assert!(!mentions(text, "crate::a::B"), "{text}");
        }
        let with_feature = "#[cfg(any(test, feature = \"x\"))] fn f() { crate::a::B; }";
        assert!(mentions(with_feature, "crate::a::B"));
    }

    #[test]
    fn imports_of_each_form_are_read() {
        let text = "use crate::a::{self, B, c::D as E, f::*};\npub(crate) use g::H as _;";
        let import = |name: Option<&str>, path: &str, shared| Import {
            name: name.map(str::to_owned),
            path: path.split("::").map(str::to_owned).collect(),
            shared,
        };
        assert_eq!(
            names(text).imports,
            [
                import(Some("a"), "crate::a", false),
                import(Some("B"), "crate::a::B", false),
                import(Some("E"), "crate::a::c::D", false),
                import(None, "crate::a::f", false),
                import(Some("_"), "g::H", true),
            ]
        );
    }
}
