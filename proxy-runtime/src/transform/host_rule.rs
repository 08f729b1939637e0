//! The `Host` that a route sends.

use http::HeaderValue;

use super::NoValue;

/// The rule for the `Host` of requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HostHeaderRule {
    /// The client's.
    Original,
    /// The destination's.
    Destination,
    /// The destination's, even if filters changed it.
    Restored,
    /// The one that the route names.
    Fixed(HeaderValue),
    /// One that depends on the request.
    Computed(Box<ComputedHost>),
}

/// A `Host` that the route computes from a part of the path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ComputedHost {
    /// The number of the value among those that the plan computes.
    pub(super) number: usize,
    /// The rule where there is no value.
    pub(super) otherwise: HostHeaderRule,
}

/// The start of a `Host` line that may name the destination.
pub(crate) const HOST_LINE: &[u8] = b"\r\nHost: ";

/// Marks the `Host` of a written head as one that does not name the destination, by the case of its
/// name. Needed where that depends on the request: the path that the value came from may be gone when
/// the head is changed for another destination.
#[cold]
pub(crate) fn mark_host(head: &mut [u8]) {
    let line = head.windows(2).position(|there| there == b"\r\n");
    if let Some(line) = line
        && head[line..].starts_with(HOST_LINE)
    {
        // Names are compared ignoring case, so destinations notice no difference.
        head[line + 2] = b'h';
    }
}

/// The `Host` of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host<'v> {
    /// The client's.
    Original,
    /// The destination's.
    Destination,
    /// The destination's, even if filters changed it.
    Restored,
    /// The given one.
    Named(&'v HeaderValue),
}

impl HostHeaderRule {
    /// Resolves the rule for a request with these computed `values`.
    #[inline]
    pub(crate) fn resolve<'v>(&'v self, values: &'v [Result<HeaderValue, NoValue>]) -> Host<'v> {
        match self {
            Self::Original => Host::Original,
            Self::Destination => Host::Destination,
            Self::Restored => Host::Restored,
            Self::Fixed(value) => Host::Named(value),
            Self::Computed(computed) => computed.resolve(values),
        }
    }
}

impl ComputedHost {
    #[cold]
    fn resolve<'v>(&'v self, values: &'v [Result<HeaderValue, NoValue>]) -> Host<'v> {
        match values.get(self.number) {
            Some(Ok(value)) => Host::Named(value),
            // The client's `Host` must not take the place of a value that it made invalid.
            Some(Err(NoValue::NotToBeWritten)) => Host::Restored,
            Some(Err(NoValue::NotThere)) | None => self.otherwise.resolve(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule that sends the value of this number, or else `otherwise`.
    fn computed(number: usize, otherwise: HostHeaderRule) -> HostHeaderRule {
        HostHeaderRule::Computed(Box::new(ComputedHost { number, otherwise }))
    }

    #[test]
    fn the_last_value_that_there_is_counts() {
        let value = HeaderValue::from_static("a.example");
        let fixed = HeaderValue::from_static("fixed.example");
        for (computed_value, expected) in [
            (Ok(value.clone()), Host::Named(&value)),
            (Err(NoValue::NotThere), Host::Named(&fixed)),
            (Err(NoValue::NotToBeWritten), Host::Restored),
        ] {
            let rule = computed(0, HostHeaderRule::Fixed(fixed.clone()));
            let values = [computed_value];
            assert_eq!(rule.resolve(&values), expected, "{values:?}");
        }
        let chain = computed(1, computed(0, HostHeaderRule::Original));
        let values = [Ok(value.clone()), Err(NoValue::NotThere)];
        assert_eq!(chain.resolve(&values), Host::Named(&value));
        let values = [Err(NoValue::NotThere), Err(NoValue::NotThere)];
        assert_eq!(chain.resolve(&values), Host::Original);
    }
}
