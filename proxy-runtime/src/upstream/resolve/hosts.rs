//! The table of hosts of the system.

use std::net::IpAddr;

/// The path of the table.
#[cfg(unix)]
const FILE: &str = "/etc/hosts";

/// The addresses of a name in the table; none if there is no table.
pub(super) async fn find(name: &str) -> Vec<IpAddr> {
    #[cfg(unix)]
    if let Ok(table) = read().await {
        return find_in(&table, name);
    }
    let _ = name;
    Vec::new()
}

#[cfg(unix)]
async fn read() -> std::io::Result<String> {
    let reading = tokio::task::spawn_blocking(|| std::fs::read_to_string(FILE));
    reading.await.map_err(std::io::Error::other)?
}

/// The addresses of a name in the text of a table.
#[cfg(any(unix, test, feature = "dns"))]
pub(super) fn find_in(table: &str, name: &str) -> Vec<IpAddr> {
    let lines = table.lines().filter_map(|line| {
        // A `#` begins a comment.
        let line = line.split('#').next()?;
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words
            .any(|word| word.eq_ignore_ascii_case(name))
            .then_some(address)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_not_in_comments() {
        let table = "127.0.0.1\tlocalhost  Loop # other\n# 10.0.0.1 localhost\n::1 localhost\nfe80::1%eth0 localhost\nx localhost\n";
        let found = |name: &str| {
            let addresses = find_in(table, name);
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
        assert_eq!(found("loop"), ["127.0.0.1"]);
        assert_eq!(found("other"), [""; 0]);
        assert_eq!(found("local"), [""; 0]);
    }
}
