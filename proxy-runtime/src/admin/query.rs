//! Query parameters of the admin API.

use percent_encoding::percent_decode_str;

/// Decoded parameters by name. All values of a repeated name are kept.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// The first value of `name` that is not empty.
    pub(super) fn get<'q>(&'q self, name: &'q str) -> Option<&'q str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// All values of `name`.
    pub(super) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        let pairs = self.0.iter().filter(move |(key, _)| key == name);
        pairs.map(|(_, value)| value.as_str())
    }

    /// The `limit` parameter, capped at `most`. `default` if it is missing or not a number.
    pub(super) fn limit(&self, default: usize, most: usize) -> usize {
        self.number("limit").unwrap_or(default).min(most)
    }

    /// The number in a parameter.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }
}

fn decoded(text: &str) -> String {
    // Forms write a space as `+`.
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_repeat() {
        let query = Query::parse("method=GET&header=A%3A+1&header=B:2&empty=&flag&limit=7");
        assert_eq!(query.get("method"), Some("GET"));
        assert_eq!(query.all("header").collect::<Vec<_>>(), ["A: 1", "B:2"]);
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.get("flag"), None);
        assert_eq!(query.limit(50, 5), 5);
        assert_eq!(Query::parse("limit=x").limit(50, 100), 50);
    }
}
