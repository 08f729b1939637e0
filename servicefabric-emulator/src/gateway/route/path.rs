use percent_encoding::percent_decode_str;

/// The segments of a path, decoded one by one, so that `%2F` stays inside of its segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<String>);

impl Path {
    /// Parses a raw path. One final slash is ignored. `None` if its decoded form is not UTF-8.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        let inner = raw.strip_prefix('/')?;
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Some(Self(Vec::new()));
        }
        inner
            .split('/')
            .map(|segment| {
                let decoded = percent_decode_str(segment).decode_utf8().ok()?;
                Some(decoded.into_owned())
            })
            .collect::<Option<_>>()
            .map(Self)
    }

    /// The segments in order.
    pub(super) fn segments(&self) -> &[String] {
        &self.0
    }
}
