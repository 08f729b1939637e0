//! Links of a README that is read outside of the repository: in the registry, and as the front page
//! of a crate's documentation.

use std::path::Path;

/// The path of files in the repository's URL.
const FILES: &str = "/blob/main/";

/// The folder of the guides, which no crate packages.
const GUIDES: &str = "docs/";

/// The allowed targets of links.
pub(crate) struct Places<'a> {
    /// The URL of the repository.
    pub(crate) repository: &'a str,
    /// The checkout of the repository.
    pub(crate) root: &'a Path,
    /// The files of the package.
    pub(crate) packaged: &'a [String],
}

impl Places<'_> {
    /// The links of a page that are broken outside of the repository, each with the reason.
    pub(crate) fn complaints(&self, text: &str) -> Vec<String> {
        let wrong = targets(text).into_iter().filter_map(|target| {
            let reason = self.complaint(target)?;
            Some(format!("links to `{target}`, {reason}"))
        });
        wrong.collect()
    }

    /// The complaint about a page whose opening, above the second heading, links to no guide.
    pub(crate) fn complaint_about_guide(&self, text: &str) -> Option<&'static str> {
        let opening = text.split("\n## ").next()?;
        let guides = format!("{}{FILES}{GUIDES}", self.repository);
        let links = targets(opening);
        let has_guide = links.iter().any(|target| target.starts_with(&guides));
        (!has_guide).then_some("links to no page of docs/ above its second heading")
    }

    fn complaint(&self, target: &str) -> Option<&'static str> {
        if let Some(rest) = target.strip_prefix(self.repository) {
            let path = rest.strip_prefix(FILES)?.split('#').next()?;
            let is_there = self.root.join(path).exists();
            return (!is_there).then_some("which the repository does not have");
        }
        // Other sites, headings of the page itself, and items, which rustdoc checks.
        if target.contains("://") || target.starts_with('#') || target.contains("::") {
            return None;
        }
        let path = target.split('#').next()?.trim_end_matches('/');
        let folder = format!("{path}/");
        let is_packaged = |file: &String| file == path || file.starts_with(&folder);
        let is_there = self.packaged.iter().any(is_packaged);
        (!is_there).then_some("which is not in the package; write its URL in the repository")
    }
}

/// The targets of links, images and references, outside of code blocks.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        if inside {
            continue;
        }
        let inline = line.split("](").skip(1);
        targets.extend(inline.filter_map(|rest| rest.split([')', ' ']).next()));
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            targets.push(target.trim());
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_is_linked_at_the_top() {
        let places = Places {
            repository: "https://example.com/project",
            root: Path::new("."),
            packaged: &[],
        };
        let guide = "[a](https://example.com/project/blob/main/docs/a.md#b)";
        let top = format!("# T\n\nText. {guide}.\n\n## More\n");
        assert_eq!(places.complaint_about_guide(&top), None);
        let below = format!("# T\n\nText.\n\n## More\n{guide}\n");
        let other = guide.replace("docs/", "design/");
        for text in [&below, &other] {
            assert!(places.complaint_about_guide(text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_link_has_to_lead_somewhere_outside_of_the_repository() {
        let root = tempfile::tempdir().expect("a directory can be made");
        std::fs::write(root.path().join("page.md"), "").expect("a file can be written");
        let packaged = ["README.md".to_owned(), "docs/inside.md".to_owned()];
        let places = Places {
            repository: "https://example.com/project",
            root: root.path(),
            packaged: &packaged,
        };
        for (text, fine) in [
            ("[a](https://example.org/)", true),
            ("[a](#heading)", true),
            ("[`Item`](crate::publishable::Item)", true),
            ("[a](docs/inside.md#heading)", true),
            ("[a](docs/)", true),
            ("[a](https://example.com/project/blob/main/page.md#x)", true),
            ("[a](https://example.com/project/blob/main/none.md)", false),
            ("[a](../page.md)", false),
            ("x [a](docs/none.md), [b](#b)", false),
            ("[a]: ../page.md", false),
            ("```\n[a](../page.md)\n```", true),
        ] {
            let complaints = places.complaints(text);
            assert_eq!(complaints.is_empty(), fine, "{text}: {complaints:?}");
        }
    }
}
