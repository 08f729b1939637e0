//! The links within the project: their file and heading must exist.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Returns the broken links of the page at `path`.
pub(crate) fn complaints(root: &Path, path: &str, text: &str) -> Vec<String> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let wrong = links(text).into_iter().filter_map(|link| {
        let reason = complaint(root, path, text, link.target)?;
        Some(format!(
            "{path}:{} links to `{}`, {reason}",
            link.line, link.target
        ))
    });
    wrong.collect()
}

fn complaint(root: &Path, path: &str, text: &str, target: &str) -> Option<&'static str> {
    // Other places, and items of the documentation, which rustdoc checks.
    if target.contains("://") || target.starts_with("mailto:") || target.contains("::") {
        return None;
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let mut other = None;
    if !file.is_empty() {
        let folder = Path::new(path).parent().expect("a page lies in a folder");
        let Some(place) = normal(&folder.join(file)) else {
            return Some("which is outside of the project");
        };
        let place = root.join(place);
        if !place.exists() {
            return Some("which is not there");
        }
        other = Some(place);
    }
    let heading = heading?;
    let read;
    let text = match other {
        None => text,
        Some(place) => {
            read = fs::read_to_string(place).ok();
            match &read {
                Some(text) => text,
                None => return Some("which has no headings"),
            }
        }
    };
    let found = anchors(text).iter().any(|anchor| anchor == heading);
    (!found).then_some("where there is no such heading")
}

/// The path without `.` and `..`; `None` if it leads out of the project.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => normal.pop().then_some(())?,
            Component::CurDir => {}
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// The lines of a page outside of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// Links, images, and targets of references.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let reference = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = reference {
            links.push(Link {
                line: number,
                target: target.trim(),
            });
            continue;
        }
        // Text between backticks is code.
        let mut rest = line;
        while let Some(at) = rest.find(['`', ']']) {
            let (found, after) = rest[at..].split_at(1);
            rest = after;
            if found == "`" {
                rest = after.split_once('`').map_or("", |(_, rest)| rest);
            } else if let Some(target) = after.strip_prefix('(')
                && let Some((target, after)) = target.split_once(')')
            {
                let target = target.split(' ').next().unwrap_or_default();
                links.push(Link {
                    line: number,
                    target,
                });
                rest = after;
            }
        }
    }
    links
}

/// The anchors that forges generate for the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let earlier = anchors.iter().filter(|other| {
            let rest = other.strip_prefix(anchor.as_str());
            rest.is_some_and(|rest| rest.is_empty() || is_number(rest))
        });
        let earlier = earlier.count();
        anchors.push(match earlier {
            0 => anchor,
            _ => format!("{anchor}-{earlier}"),
        });
    }
    anchors
}

fn is_number(suffix: &str) -> bool {
    suffix
        .strip_prefix('-')
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_text_and_not_in_code() {
        let text = "see [a](b.md) and ![c](d.png \"e\")\n```text\n[no](x)\n```\n`[no](y)` [f](#g)\n[h]: i.md\n\
                    | [`code`](j.rs) | `a[0](k)` |\n";
        let targets: Vec<_> = links(text)
            .iter()
            .map(|link| (link.line, link.target))
            .collect();
        assert_eq!(
            targets,
            [
                (1, "b.md"),
                (1, "d.png"),
                (5, "#g"),
                (6, "i.md"),
                (7, "j.rs")
            ]
        );
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# What it is\n## `Server.Limits`, and more\n### Routes\n## Routes\n#no\n```\n# no\n```\n";
        assert_eq!(
            anchors(text),
            ["what-it-is", "serverlimits-and-more", "routes", "routes-1"]
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_its_line() {
        let root = tempfile::tempdir().expect("a directory can be made");
        let docs = root.path().join("docs");
        fs::create_dir(&docs).expect("it can be made");
        fs::write(docs.join("a.md"), "# Title\n").expect("it can be written");
        fs::write(root.path().join("top.md"), "# Top\n").expect("it can be written");
        let of = |text: &str| complaints(root.path(), "docs/b.md", text);
        for good in [
            "[x](a.md)",
            "[x](a.md#title)",
            "[x](../top.md#top)",
            "# H\n[x](#h)",
            "[x](https://a.example/y)",
            "[x](crate::source_policy::Y)",
            "[x](.)",
        ] {
            assert!(of(good).is_empty(), "{good}: {:?}", of(good));
        }
        for (bad, expected) in [
            (
                "[x](c.md)",
                "docs/b.md:1 links to `c.md`, which is not there",
            ),
            (
                "\n[x](a.md#other)",
                "docs/b.md:2 links to `a.md#other`, where there is no such heading",
            ),
            (
                "[x](#h)",
                "docs/b.md:1 links to `#h`, where there is no such heading",
            ),
            (
                "[x](../../y)",
                "docs/b.md:1 links to `../../y`, which is outside of the project",
            ),
            (
                "[x](.#y)",
                "docs/b.md:1 links to `.#y`, which has no headings",
            ),
        ] {
            assert_eq!(of(bad), [expected], "{bad}");
        }
        assert!(complaints(root.path(), "docs/b.rs", "[x](c.md)").is_empty());
    }
}
