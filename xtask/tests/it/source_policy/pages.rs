//! Style of pages: a purpose at the top, lines of a readable width, and plain words.

use super::words;

/// Maximum columns of a line of text. Tables, code and headings are not counted.
const WIDTH: usize = 130;

/// Pages with lines beyond [`WIDTH`], each with its maximum. The numbers may only fall.
const LONG_LINES: [(&str, usize); 0] = [];

/// Archaisms, and words that hide who acts, each with the maximum over all pages together. The
/// numbers may only fall.
const WORDS: [(&str, usize); 22] = [
    ("albeit", 0),
    ("anew", 1),
    ("aught", 0),
    ("be it", 0),
    ("but for", 0),
    ("ere", 0),
    ("henceforth", 0),
    ("heretofore", 0),
    ("hitherto", 0),
    ("lest", 0),
    ("mend", 0),
    ("mends", 0),
    ("nought", 0),
    ("of late", 0),
    ("somebody", 6),
    ("somebody's", 0),
    ("nobody", 16),
    ("thence", 0),
    ("thereof", 0),
    ("whence", 0),
    ("whereof", 0),
    ("whoever", 9),
];

/// Tasks of operators, each with its page or section.
const TASKS: [(&str, &str); 15] = [
    ("first start", "run-the-gateway.md"),
    ("Kubernetes", "deploy.md#kubernetes"),
    ("Docker Compose", "deploy.md#docker-compose"),
    ("systemd", "deploy.md#systemd"),
    ("502, 503 and 504", "troubleshooting.md"),
    ("TLS", "run-the-gateway.md#tls"),
    ("certificates by ACME", "recipes.md#certificates-by-acme"),
    ("behind a load balancer", "recipes.md#behind-another-proxy"),
    ("Prometheus and Grafana", "monitoring.md"),
    ("hot reload", "run-the-gateway.md#hot-reload"),
    ("canary", "recipes.md#canary"),
    ("gRPC", "recipes.md#grpc"),
    ("WebSockets", "recipes.md#websockets"),
    ("migration from YARP", "from-yarp.md"),
    (
        "upgrades without downtime",
        "deploy.md#zero-downtime-upgrades",
    ),
];

/// The tasks without a link in the index of the documentation's front page, its section "How do I".
/// The README links to that page, so each is two clicks away.
pub(crate) fn tasks_without_a_link(page: &str) -> Vec<&'static str> {
    let index = page.split("\n## How do I").nth(1).unwrap_or_default();
    let is_missing = |target: &str| !index.contains(&format!("]({target})"));
    let missing = TASKS.iter().filter(|(_, target)| is_missing(target));
    missing.map(|(task, _)| *task).collect()
}

/// Returns true if the rules apply to the file at `path`: the documentation, and the front page of
/// each folder.
pub(crate) fn is_page(path: &str) -> bool {
    let is_documentation = path.starts_with("docs/") && path.ends_with(".md");
    is_documentation || path == "README.md" || path.ends_with("/README.md")
}

/// Returns the complaints about the opening and the width of a page under `docs`.
pub(crate) fn complaints(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if path.starts_with("docs/")
        && let Some(reason) = opening(text)
    {
        wrong.push(format!(
            "{path} {reason}; begin with a sentence like \"This page is for operators who …\""
        ));
    }
    let allowed = LONG_LINES.iter().find(|(page, _)| *page == path);
    let allowed = allowed.map_or(0, |(_, most)| *most);
    let long: Vec<_> = long_lines(text).collect();
    if long.len() > allowed {
        wrong.push(format!(
            "{path} has {} lines of more than {WIDTH} columns, and may have {allowed}: lines {long:?}",
            long.len()
        ));
    }
    wrong
}

/// The reason why the opening of a page does not state its purpose.
fn opening(text: &str) -> Option<&'static str> {
    let below = text.lines().skip_while(|line| !line.starts_with("# "));
    let opening = below.skip(1).skip_while(|line| line.is_empty());
    let opening: Vec<_> = opening.take_while(|line| !line.is_empty()).collect();
    let opening = opening.join(" ");
    let first = opening.trim_start_matches(['[', '`', '*']).chars().next();
    if opening.starts_with("```") {
        return Some("opens with a command");
    }
    if !first.is_some_and(char::is_alphanumeric) {
        return Some("does not open with a paragraph");
    }
    if first.is_some_and(char::is_lowercase) {
        return Some("opens with a predicate that has no subject");
    }
    let names_itself = ["This page", "These pages"]
        .iter()
        .any(|name| opening.contains(name));
    if !names_itself || !opening.contains(" for ") {
        return Some("does not open with what it is for, and for whom");
    }
    None
}

/// The numbers of the lines that are too long.
fn long_lines(text: &str) -> impl Iterator<Item = usize> {
    prose(text)
        .filter(|(_, line)| !line.starts_with(['|', '#']) && line.chars().count() > WIDTH)
        .map(|(number, _)| number)
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

/// The places in the pages where the listed words occur.
pub(crate) struct Words {
    found: Vec<(&'static str, usize, Vec<String>)>,
}

impl Words {
    pub(crate) fn new() -> Self {
        let found = WORDS.map(|(word, most)| (word, most, Vec::new()));
        Self {
            found: found.into(),
        }
    }

    /// Adds what the page at `path` has of them. A phrase counts also where a line ends inside it.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let page = words::plain(prose(text).map(|(_, line)| line));
        for (word, _, places) in &mut self.found {
            let count = words::count(&page, word);
            places.extend(std::iter::repeat_n(path.to_owned(), count));
        }
    }

    /// The words of which there are too many, each with its pages.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let found = self.found.iter();
        let many = found.filter(|(_, most, places)| places.len() > *most);
        many.map(|(word, most, places)| {
            format!(
                "the pages have `{word}` {} times, and may have it {most} times: {places:?}",
                places.len()
            )
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_opens_with_its_purpose_and_its_readers() {
        let good = "# T\n\nThis page is for operators\nwho run it.\n\n```sh\nrun\n```\n";
        assert_eq!(opening(good), None);
        for (bad, reason) in [
            (
                "# T\n\n```sh\nrun\n```\nstarts it.\n",
                "opens with a command",
            ),
            ("# T\n\n| a | b |\n", "does not open with a paragraph"),
            ("# T\n", "does not open with a paragraph"),
            (
                "# T\n\n`run` starts this page for all.\n",
                "opens with a predicate that has no subject",
            ),
            (
                "# T\n\nIt starts two programs.\n",
                "does not open with what it is for, and for whom",
            ),
            (
                "# T\n\nThis page has tables.\n",
                "does not open with what it is for, and for whom",
            ),
        ] {
            assert_eq!(opening(bad), Some(reason), "{bad}");
        }
        assert_eq!(complaints("docs/new.md", "# T\n\n```sh\n```\n").len(), 1);
        assert!(complaints("a/README.md", "# T\n\n```sh\n```\n").is_empty());
    }

    #[test]
    fn a_task_without_a_link_is_named() {
        let links = TASKS.map(|(_, target)| format!("[x]({target})"));
        let page = |links: &[String]| format!("# T\n\n## How do I …\n\n{}\n", links.join(" "));
        assert!(tasks_without_a_link(&page(&links)).is_empty());
        assert_eq!(tasks_without_a_link(&page(&links[1..])), ["first start"]);
        let elsewhere = links.join(" ");
        assert_eq!(tasks_without_a_link(&elsewhere).len(), TASKS.len());
    }

    #[test]
    fn lines_of_text_have_a_width() {
        let long = "x".repeat(WIDTH + 1);
        let page = format!(
            "# T\n{long}\n| {long} |\n```\n{long}\n```\n{}\n",
            "é".repeat(WIDTH)
        );
        assert_eq!(long_lines(&page).collect::<Vec<_>>(), [2]);
        assert_eq!(complaints("a/README.md", &page).len(), 1);
    }

    #[test]
    fn words_are_counted_over_all_pages() {
        let mut words = Words::new();
        let most = WORDS
            .iter()
            .find(|(word, _)| *word == "lest")
            .expect("it is listed")
            .1;
        words.add("docs/a.md", "Modest lesterly `x`.\n```\nlest\n```\n");
        assert!(words.complaints().is_empty());
        words.add("docs/b.md", &"Wait, lest it\n".repeat(most + 1));
        assert_eq!(
            words.complaints(),
            [format!(
                "the pages have `lest` {} times, and may have it {most} times: {:?}",
                most + 1,
                vec!["docs/b.md"; most + 1]
            )]
        );
        let mut words = Words::new();
        words.add("docs/a.md", &"all but\nFOR one\n".repeat(10));
        assert_eq!(words.complaints().len(), 1, "over the end of a line");
    }
}
