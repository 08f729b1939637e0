//! "Did you mean": the known name that is nearest to an unknown one.

/// The candidate that `name` was probably meant to be, if one is near enough.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Long names are not typing errors of short ones, and the comparison is quadratic.
    if name.len() > 64 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let length = name.chars().count().max(candidate.chars().count());
            let distance = distance(&name, &candidate.to_ascii_lowercase());
            (distance <= (length / 3).min(3)).then_some((distance, candidate))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one text the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j + 1] + 1)
                .min(row[j] + 1)
                .min(last[j] + usize::from(x != y));
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised_and_another_word_is_not() {
        let names = ["Hosts", "Path", "Order", "Methods", "LoadBalancingPolicy"];
        for (name, expected) in [
            ("Host", Some("Hosts")),
            ("paht", Some("Path")),
            ("HOSTS", Some("Hosts")),
            ("LoadBalancePolicy", Some("LoadBalancingPolicy")),
            ("Metadata", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(name, names), expected, "{name}");
        }
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, expected) in [("", "abc", 3), ("abc", "acb", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), expected);
            assert_eq!(distance(b, a), expected);
        }
    }
}
