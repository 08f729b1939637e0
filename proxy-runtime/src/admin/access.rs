//! The access to the admin API: by tokens, or by certificates of clients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

/// Minimum length of a token: 96 bits in base64. Shorter ones could be guessed.
const LEAST: usize = 16;

/// Maximum length of a token, so that it fits into a request head.
const LONGEST: usize = 512;

/// Maximum number of tokens. Each is compared with what a request presents.
const MOST: usize = 16;

/// The tokens that open the admin API. The tokens themselves are not kept, only their digests.
///
/// To rotate, add a new token, and remove the old one when no client sends it any more.
///
/// # Examples
///
/// ```
/// use proxy_runtime::admin::AdminTokens;
///
/// assert!(AdminTokens::parse("# since March\nu0HkMsWWlP1Wr2vwqE0t6RsoR4kKzJkf\n").is_ok());
/// assert!(AdminTokens::parse("hunter2").is_err());
/// ```
#[derive(Clone)]
pub struct AdminTokens(Vec<[u8; 32]>);

/// The reason why a text has no usable tokens. Its message names lines but never their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAdminTokens {
    /// The text has no token.
    #[error("there is no token; `openssl rand -hex 32` makes one")]
    None,
    /// A line is not a token.
    #[error(
        "line {line} is no token of {LEAST} to {LONGEST} visible ASCII characters; `openssl rand -hex 32` makes one"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The text has more tokens than are accepted.
    #[error("there are more than {MOST} tokens")]
    TooMany,
}

impl AdminTokens {
    /// Reads tokens from a text with one on each line. Empty lines, and those that begin with `#`,
    /// are skipped.
    ///
    /// # Errors
    ///
    /// Fails if a line has not 16 to 512 visible ASCII characters, if there is no token, or if there
    /// are more than 16.
    pub fn parse(text: &str) -> Result<Self, InvalidAdminTokens> {
        let mut digests = Vec::new();
        for (position, line) in text.lines().enumerate() {
            let token = line.trim();
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            if digests.len() == MOST {
                return Err(InvalidAdminTokens::TooMany);
            }
            let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_token || !(LEAST..=LONGEST).contains(&token.len()) {
                return Err(InvalidAdminTokens::Line { line: position + 1 });
            }
            digests.push(digest(token.as_bytes()));
        }
        match digests.is_empty() {
            true => Err(InvalidAdminTokens::None),
            false => Ok(Self(digests)),
        }
    }

    /// Returns true if a request presents one of the tokens: as a bearer token, or as the password of
    /// HTTP Basic, which browsers ask for.
    ///
    /// The time that this takes depends on the length of what is presented, not on its content:
    /// digests are compared in full, and with all tokens.
    pub(super) fn are_presented(&self, headers: &HeaderMap) -> bool {
        let mut lines = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return false;
        };
        let Some(presented) = token(line) else {
            return false;
        };
        let presented = digest(&presented);
        self.0
            .iter()
            .fold(false, |found, known| found | are_equal(known, &presented))
    }
}

impl std::fmt::Debug for AdminTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminTokens")
            .field("count", &self.0.len())
            .finish_non_exhaustive()
    }
}

/// Returns the token of `Authorization`: `Bearer` (RFC 6750), or the password of `Basic` (RFC 7617).
fn token(line: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = line.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("Bearer") {
        return Some(rest.as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let credentials = STANDARD.decode(rest).ok()?;
    let colon = credentials.iter().position(|byte| *byte == b':')?;
    Some(credentials[colon + 1..].to_vec())
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Compares without ending at the first difference.
fn are_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "one-one-one-one-one";
    const TWO: &str = "two:two:two:two:two";

    fn is_open(lines: &[&str]) -> bool {
        let tokens = AdminTokens::parse(&format!("{ONE}\n\n# the next one\n  {TWO}\n")).unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::AUTHORIZATION, line.parse().unwrap());
        }
        tokens.are_presented(&headers)
    }

    fn basic(credentials: &str) -> String {
        format!("Basic {}", STANDARD.encode(credentials))
    }

    #[test]
    fn each_token_opens_as_bearer_and_as_password() {
        for line in [
            format!("Bearer {ONE}"),
            format!("bearer {TWO}"),
            basic(&format!("admin:{ONE}")),
            basic(&format!(":{TWO}")),
        ] {
            assert!(is_open(&[&line]), "{line}");
        }
    }

    #[test]
    fn anything_else_is_rejected() {
        let bearer = format!("Bearer {ONE}");
        for lines in [
            &[][..],
            &["Bearer"],
            &["Bearer "],
            &["Bearer one"],
            &["Bearer one-one-one-one-one-"],
            &["Bearer one-one-one-one-onE"],
            &["Bearer one-one-one-one-one two:two:two:two:two"],
            &["Digest one-one-one-one-one"],
            &["one-one-one-one-one"],
            &[ONE],
            &["Basic one-one-one-one-one"],
            &[&*basic("admin")],
            &[&*basic("one-one-one-one-one:")],
            // Programs in front could read another one of them.
            &[&*bearer, "Bearer other"],
        ] {
            assert!(!is_open(lines), "{lines:?}");
        }
    }

    #[test]
    fn texts_without_a_good_token_are_rejected_without_their_content() {
        let many = format!("{ONE}\n").repeat(17);
        for (text, expected) in [
            ("", InvalidAdminTokens::None),
            ("# nothing\n\n", InvalidAdminTokens::None),
            ("#\nfifteen-letters", InvalidAdminTokens::Line { line: 2 }),
            (
                "one two three four five",
                InvalidAdminTokens::Line { line: 1 },
            ),
            (
                "ünicode-ünicode-ünicode",
                InvalidAdminTokens::Line { line: 1 },
            ),
            (&"x".repeat(513), InvalidAdminTokens::Line { line: 1 }),
            (&many, InvalidAdminTokens::TooMany),
        ] {
            let error = AdminTokens::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
        }
        let error = AdminTokens::parse("hunter2").unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        let tokens = AdminTokens::parse(ONE).unwrap();
        assert!(!format!("{tokens:?}").contains(ONE));
    }
}
