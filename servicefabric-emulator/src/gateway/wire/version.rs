use std::fmt;

/// The value of `api-version`: a decimal number, in ten-thousandths.
///
/// A runtime accepts any version from a template's first to its own. The form of the response depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ApiVersion(u32);

const DIGITS: usize = 4;
const PREVIEW: &str = "-preview";

impl ApiVersion {
    /// The first version of most templates.
    pub(crate) const FIRST: Self = Self::new(1, 0);
    /// The newest supported version: that of the cluster version it reports.
    pub(crate) const CURRENT: Self = Self::new(9, 1);
    /// The first version with pages. Before it, lists are plain arrays.
    pub(crate) const PAGED: Self = Self::new(2, 0);
    /// The first version in which `~` separates the segments of an id.
    pub(crate) const TILDE: Self = Self::new(6, 0);
    /// The first version in which lists of services honour `MaxResults`, and epochs are called
    /// `PrimaryEpoch`.
    pub(crate) const V6_4: Self = Self::new(6, 4);

    /// Creates the version `major.minor`, where minor has one digit.
    pub(crate) const fn new(major: u32, minor: u32) -> Self {
        Self(major * 10_000 + minor * 1_000)
    }

    /// Parses `6.0`, `6`, `6.0-preview`. `None` for any other text, and for numbers with more than four
    /// digits before or after the point.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix(PREVIEW).unwrap_or(text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| {
            (1..=DIGITS).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole) || !digits(fraction) {
            return None;
        }
        let padded = format!("{fraction:0<DIGITS$}");
        Some(Self(
            whole.parse::<u32>().ok()? * 10_000 + padded.parse::<u32>().ok()?,
        ))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10_000, self.0 % 10_000 / 1_000)
    }
}
