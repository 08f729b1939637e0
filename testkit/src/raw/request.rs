/// The head of a request as a raw origin received it.
///
/// Parsed without validation: everything that a proxy forwards must be visible. Text is ISO 8859-1,
/// one character per byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, up to the first space.
    pub method: String,
    /// The target, between the first and the last space of the first line.
    pub target: String,
    /// The version, after the last space.
    pub version: String,
    /// Lines as name and value in their order on the wire; names keep their case, values have no
    /// outer spaces. A line without a colon is a name only.
    pub headers: Vec<(String, String)>,
    /// The whole head, with the empty line.
    pub bytes: Vec<u8>,
}

impl RequestHead {
    pub(super) fn lenient(bytes: Vec<u8>) -> Self {
        let text = crate::latin1(&bytes);
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let (method, rest) = first.split_once(' ').unwrap_or((first, ""));
        let (target, version) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let headers = lines
            .filter(|line| !line.is_empty())
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
            .collect();
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: version.to_owned(),
            headers,
            bytes,
        }
    }

    /// The first value of a field, ignoring the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_values(name).first().copied()
    }

    /// All values of a field in the order of the wire, ignoring the case of its name.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Returns true if the last transfer coding is chunked.
    pub fn is_chunked(&self) -> bool {
        self.header_values("transfer-encoding")
            .last()
            .and_then(|codings| codings.rsplit(',').next())
            .is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
    }
}
