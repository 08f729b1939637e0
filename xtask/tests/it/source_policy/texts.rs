//! Words that tie a text to one machine or to one provider of packages.

use std::path::Path;

/// Hosts of package registries. Clients know their registry; a text that names one is wrong behind
/// a mirror.
///
/// In two parts, so that this file does not name them.
const REGISTRIES: [(&str, &str); 7] = [
    ("crates", ".io"),
    ("npmjs", ".org"),
    ("npmjs", ".com"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("deb.debian", ".org"),
    ("security.debian", ".org"),
];

/// Lock files of package clients, which contain the registry.
const LOCK_FILES: [&str; 4] = [
    "Cargo.lock",
    "fuzz/Cargo.lock",
    "benches/competitors/axum-reverse-proxy/Cargo.lock",
    "benches/competitors/pingora/Cargo.lock",
];

/// Paths that exist on one machine.
pub(crate) struct Places(Vec<String>);

impl Places {
    /// The checkout and the home directory of the current user.
    pub(crate) fn of_this_machine(root: &Path) -> Self {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let home = home.map(|home| home.to_string_lossy().into_owned());
        Self::new(&root.to_string_lossy(), home.as_deref())
    }

    fn new(root: &str, home: Option<&str>) -> Self {
        let mut places = vec![root.to_owned()];
        places.extend(home.map(|home| format!("{}/", home.trim_end_matches('/'))));
        // `/` or `/src` is in too many texts to mean the machine.
        places.retain(|place| place.matches(['/', '\\']).count() > 1);
        // Where homes of others are, in parts as above.
        places.extend(
            [["/home", "/runner/"], ["/Use", "rs/"], [":\\Use", "rs\\"]]
                .map(|parts| parts.concat()),
        );
        Self(places)
    }
}

/// Returns the violations in a text.
pub(crate) fn complaints(path: &str, text: &str, places: &Places) -> Vec<String> {
    if LOCK_FILES.contains(&path) {
        return Vec::new();
    }
    let hosts = REGISTRIES.map(|(name, end)| format!("{name}{end}"));
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(host) = hosts.iter().find(|host| names_host(line, host)) {
            wrong.push(format!("{path}:{number} names the registry host {host}"));
        }
        if let Some(place) = places.0.iter().find(|place| line.contains(place.as_str())) {
            wrong.push(format!(
                "{path}:{number} names {place}, which is a place on one machine"
            ));
        }
    }
    wrong
}

/// Returns true if a line names a host, alone or with a subdomain, but not as a part of a longer word.
fn names_host(line: &str, host: &str) -> bool {
    line.match_indices(host).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + host.len()..].chars().next();
        let inside_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !inside_word(before) && !inside_word(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(index: usize) -> String {
        let (name, end) = REGISTRIES[index];
        format!("{name}{end}")
    }

    fn places() -> Places {
        Places::new("/builds/gateway", Some("/homes/jo"))
    }

    #[test]
    fn a_registry_host_is_found_with_its_line() {
        let text = format!("see\nhttps://static.{}/x and npm\n", host(0));
        assert_eq!(
            complaints("README.md", &text, &places()),
            [format!("README.md:2 names the registry host {}", host(0))]
        );
        for index in 0..REGISTRIES.len() {
            assert_eq!(
                complaints("a", &host(index), &places()).len(),
                1,
                "{}",
                host(index)
            );
        }
    }

    #[test]
    fn a_lock_file_and_a_longer_word_are_no_mention() {
        let lock = format!(
            "source = \"registry+https://github.com/rust-lang/{}-index\"",
            host(0)
        );
        assert!(complaints("Cargo.lock", &lock, &places()).is_empty());
        assert!(complaints("a", &format!("my{}", host(3)), &places()).is_empty());
        assert!(complaints("a", &format!("{}anization", host(3)), &places()).is_empty());
    }

    #[test]
    fn a_path_of_the_machine_is_found() {
        let found = |line: &str| complaints("a.rs", line, &places()).len();
        assert_eq!(found("in /builds/gateway/src"), 1);
        assert_eq!(found("cat /homes/jo/.config"), 1);
        assert_eq!(found(&["/home", "/runner/x"].concat()), 1);
        assert_eq!(found(&["C:\\Use", "rs\\me"].concat()), 1);
        assert_eq!(found("GET /homes/jo and /homes/joe/x"), 0);
    }

    #[test]
    fn a_checkout_at_the_top_of_the_file_system_forbids_no_slash() {
        let places = Places::new("/", Some("/"));
        assert!(complaints("a.rs", "let path = \"/api/x\";", &places).is_empty());
    }
}
