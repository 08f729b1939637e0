use std::borrow::Cow;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use super::ApiError;

/// The arguments of a query. Names are case-sensitive; the first argument of a name counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(Vec<(String, String)>);

impl Arguments {
    /// Parses a query. `+` is a plus sign: the gateway reads URIs, not forms.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` if a percent-encoded part is not UTF-8.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let decode = |part: &str| {
            percent_decode_str(part)
                .decode_utf8()
                .map(Cow::into_owned)
                .map_err(|_| ApiError::invalid("the query is not UTF-8"))
        };
        query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((decode(name)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the argument as written.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the argument as written. `None` if it is absent or empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Returns the argument, which must be present and not empty.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` that names it.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.given(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Parses `true` or `false` in any case; `default` if absent.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for anything else.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        match self.given(name) {
            None => Ok(default),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(ApiError::invalid(format!(
                "{name} is `{value}`, but must be true or false"
            ))),
        }
    }

    /// Returns a number. `None` if it is absent.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` if it is not a number, or out of range.
    pub(crate) fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, ApiError> {
        self.given(name)
            .map(|value| {
                value.parse().map_err(|_| {
                    ApiError::invalid(format!("{name} is `{value}`, but must be a number"))
                })
            })
            .transpose()
    }

    /// Parses `MaxResults`. `None` if it is absent or 0, which means as many as fit.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` when it is negative or no number.
    pub(crate) fn max_results(&self) -> Result<Option<usize>, ApiError> {
        let wanted = self.number::<i64>("MaxResults")?.unwrap_or(0);
        let wanted = usize::try_from(wanted)
            .map_err(|_| ApiError::invalid(format!("MaxResults is {wanted}, less than 0")))?;
        Ok(Some(wanted).filter(|wanted| *wanted > 0))
    }
}
