//! Explanations without possible secrets.

use http::request::Parts;

use super::{Explanation, ForwardedRequest};
use crate::status::secret::{REDACTED, sounds_secret};
use crate::status::shown_url::shown_url;

impl Explanation {
    /// Hides values of headers and query parameters that transforms add, if their names sound like
    /// secrets. Headers that `asked` already has stay, since the caller knows them.
    pub(super) fn without_secrets(mut self, asked: &Parts) -> Self {
        if let Some(forwarded) = &mut self.forwarded {
            hide_added(forwarded, asked);
        }
        self
    }
}

fn hide_added(forwarded: &mut ForwardedRequest, asked: &Parts) {
    for (name, value) in &mut forwarded.headers {
        // The user already knows a value that came with the request.
        let mut sent = asked.headers.get_all(&*name).into_iter();
        if sounds_secret(name) && !sent.any(|sent| sent.as_bytes() == value.as_bytes()) {
            REDACTED.clone_into(value);
        }
    }
    forwarded.uri = shown_url(&forwarded.uri);
}
