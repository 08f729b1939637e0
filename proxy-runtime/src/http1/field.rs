//! The meaning of fields for a proxy, by their names.

use super::span::Span;

/// The meaning of a field for a proxy: one byte, computed once while the head is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum FieldClass {
    /// A field without meaning for a proxy.
    Other,
    /// `Host`.
    Host,
    /// `Connection`.
    Connection,
    /// `Content-Length`.
    ContentLength,
    /// `Transfer-Encoding`.
    TransferEncoding,
    /// `TE`.
    Te,
    /// `Trailer`.
    Trailer,
    /// `Upgrade`.
    Upgrade,
    /// `Expect`.
    Expect,
    /// Other hop-by-hop fields: those of RFC 9110 section 7.6.1, and those that YARP adds.
    HopByHop,
    /// A field that is [`Other`](Self::Other) or [`Date`](Self::Date) by its name and that
    /// `Connection` names (RFC 9110 section 7.6.1).
    NamedByConnection,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `X-Forwarded-Host`.
    XForwardedHost,
    /// `X-Forwarded-Proto`.
    XForwardedProto,
    /// `X-Forwarded-Prefix`.
    XForwardedPrefix,
    /// Any other name with the prefix `X-Forwarded-`, `X-Real-IP` and `True-Client-IP`: claims
    /// about the origin of a request.
    XForwarded,
    /// `Authorization`, `Cookie`, `Set-Cookie`.
    Credentials,
    /// `Content-Type`, `Content-Encoding`, `Content-Range`.
    Content,
    /// `Date`.
    Date,
    /// `CDN-Loop` (RFC 8586).
    CdnLoop,
    /// A flag in the set of a head: a name has an underscore. No field has this class.
    Underscored,
    /// A field about the origin of a request, from an untrusted client. No name has this class.
    Distrusted,
}

/// A set of [`FieldClass`]es.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u32);

impl ClassSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// The set of all classes.
    pub const ALL: Self = Self(u32::MAX);

    /// Fields that are hop-by-hop by their names (RFC 9110 section 7.6.1).
    pub const HOP_BY_HOP: Self = Self::EMPTY
        .with(FieldClass::Connection)
        .with(FieldClass::TransferEncoding)
        .with(FieldClass::Te)
        .with(FieldClass::Upgrade)
        .with(FieldClass::HopByHop);

    /// Fields that are never forwarded as received: hop-by-hop fields, and fields that the proxy
    /// writes itself.
    pub const CONNECTION: Self = Self::HOP_BY_HOP
        .with(FieldClass::Host)
        .with(FieldClass::NamedByConnection)
        .with(FieldClass::Distrusted);

    /// Fields that no trailer section may have, because they would change the framing or routing
    /// (RFC 9110 section 6.5.1).
    pub const NEVER_TRAILERS: Self = Self::EMPTY
        .with(FieldClass::Host)
        .with(FieldClass::ContentLength)
        .with(FieldClass::TransferEncoding);

    /// Fields that are dropped from trailer sections: hop-by-hop fields, fields about the origin or
    /// authorisation of a request, and fields about the processing of content, which has been read
    /// by then (RFC 9110 section 6.5.1).
    pub const DROPPED_FROM_TRAILERS: Self = Self::CONNECTION
        .union(Self::NEVER_TRAILERS)
        .with(FieldClass::Trailer)
        .with(FieldClass::Expect)
        .with(FieldClass::Forwarded)
        .with(FieldClass::XForwardedFor)
        .with(FieldClass::XForwardedHost)
        .with(FieldClass::XForwardedProto)
        .with(FieldClass::XForwardedPrefix)
        .with(FieldClass::XForwarded)
        .with(FieldClass::CdnLoop)
        .with(FieldClass::Credentials)
        .with(FieldClass::Content);

    /// Returns the set with `class`.
    #[must_use]
    #[inline]
    pub const fn with(self, class: FieldClass) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Returns the set without `class`.
    #[must_use]
    #[inline]
    pub const fn without(self, class: FieldClass) -> Self {
        Self(self.0 & !(1 << class as u8))
    }

    /// Returns the set without the classes of another one.
    #[must_use]
    #[inline]
    pub const fn without_all(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the classes in either set.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the classes in both sets.
    #[must_use]
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the set contains `class`.
    #[inline]
    pub const fn contains(self, class: FieldClass) -> bool {
        self.0 >> class as u8 & 1 != 0
    }

    /// Returns true if the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A field line: the positions of name and value in the parsed buffer, and the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    start: u32,
    value: u32,
    value_length: u32,
    name_length: u16,
    class: FieldClass,
}

impl Field {
    #[inline]
    pub(super) fn new(start: u32, name_length: u16, value: Span, class: FieldClass) -> Self {
        Self {
            start,
            value: value.start(),
            value_length: value.len(),
            name_length,
            class,
        }
    }

    /// The position of the name, which is that of the line.
    #[inline]
    pub fn name(&self) -> Span {
        Span::new(self.start, self.start + u32::from(self.name_length))
    }

    /// The position of the value, without outer white space.
    #[inline]
    pub fn value(&self) -> Span {
        Span::new(self.value, self.value + self.value_length)
    }

    /// The class.
    #[inline]
    pub fn class(&self) -> FieldClass {
        self.class
    }

    #[inline]
    pub(super) fn set_class(&mut self, class: FieldClass) {
        self.class = class;
    }
}

/// The class of a name, which must be a token, in any case.
///
/// The length distinguishes most names, and the first letter nearly all others; the rest is one
/// comparison of known length.
#[inline]
pub(crate) fn classify(name: &[u8]) -> FieldClass {
    use FieldClass as Class;
    let Some(first) = name.first() else {
        return Class::Other;
    };
    match (name.len(), first | 0x20) {
        (2, b't') => exactly(name, b"te", Class::Te),
        (4, b'h') => exactly(name, b"host", Class::Host),
        (4, b'a') => exactly(name, b"alpn", Class::HopByHop),
        (4, b'd') => exactly(name, b"date", Class::Date),
        (5, b'c') => exactly(name, b"close", Class::HopByHop),
        (6, b'e') => exactly(name, b"expect", Class::Expect),
        (6, b'c') => exactly(name, b"cookie", Class::Credentials),
        (7, b'u') => exactly(name, b"upgrade", Class::Upgrade),
        (7, b't') => exactly(name, b"trailer", Class::Trailer),
        (7, b'a') => exactly(name, b"alt-svc", Class::HopByHop),
        (8, b'c') => exactly(name, b"cdn-loop", Class::CdnLoop),
        (9, b'f') => exactly(name, b"forwarded", Class::Forwarded),
        (9, b'x') => exactly(name, b"x-real-ip", Class::XForwarded),
        (10, b'c') => exactly(name, b"connection", Class::Connection),
        (10, b'k') => exactly(name, b"keep-alive", Class::HopByHop),
        (10, b's') => exactly(name, b"set-cookie", Class::Credentials),
        (12, b'c') => exactly(name, b"content-type", Class::Content),
        (13, b'a') => exactly(name, b"authorization", Class::Credentials),
        (13, b'c') => exactly(name, b"content-range", Class::Content),
        (14, b'c') => exactly(name, b"content-length", Class::ContentLength),
        (14, b'h') => exactly(name, b"http2-settings", Class::HopByHop),
        (14, b'p') => exactly(name, b"proxy-features", Class::HopByHop),
        (14, b't') => exactly(name, b"true-client-ip", Class::XForwarded),
        (15, b's') => exactly(name, b"security-scheme", Class::HopByHop),
        (16, b'c') => exactly(name, b"content-encoding", Class::Content),
        (16, b'p') => exactly(name, b"proxy-connection", Class::HopByHop),
        (17, b't') => exactly(name, b"transfer-encoding", Class::TransferEncoding),
        (17, b'p') => exactly(name, b"proxy-instruction", Class::HopByHop),
        (18, b'p') => exactly(name, b"proxy-authenticate", Class::HopByHop),
        (19, b'p') => exactly(name, b"proxy-authorization", Class::HopByHop),
        (25, b'p') => exactly(name, b"proxy-authentication-info", Class::HopByHop),
        (25, b'u') => exactly(name, b"upgrade-insecure-requests", Class::HopByHop),
        // The third letter excludes most other extensions.
        (12.., b'x') if name[2] | 0x20 == b'f' => x_forwarded(name),
        _ => Class::Other,
    }
}

fn x_forwarded(name: &[u8]) -> FieldClass {
    use FieldClass as Class;
    let Some((prefix, rest)) = name.split_first_chunk::<12>() else {
        return Class::Other;
    };
    if !is(prefix, b"x-forwarded-") {
        return Class::Other;
    }
    match rest.len() {
        3 if is(rest, b"for") => Class::XForwardedFor,
        4 if is(rest, b"host") => Class::XForwardedHost,
        5 if is(rest, b"proto") => Class::XForwardedProto,
        6 if is(rest, b"prefix") => Class::XForwardedPrefix,
        _ => Class::XForwarded,
    }
}

#[inline]
fn exactly<const N: usize>(name: &[u8], known: &[u8; N], class: FieldClass) -> FieldClass {
    if is(name, known) {
        class
    } else {
        FieldClass::Other
    }
}

/// Returns true if a token is `known` in any case. `known` must have lower-case letters, digits and
/// `-` only.
///
/// Setting the bit of lower case turns no other byte of a token into one of those.
#[inline]
pub(crate) fn is<const N: usize>(name: &[u8], known: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else {
        return false;
    };
    // Shorter than a word.
    let (Some(last), Some(known_last)) = (name.last_chunk(), known.last_chunk()) else {
        return name.map(|byte| byte | 0x20) == *known;
    };
    let (words, _) = name.as_chunks();
    let (known_words, _) = known.as_chunks();
    let mut pairs = words.iter().zip(known_words);
    // The last word may overlap the previous one.
    pairs.all(|(word, known)| lower(word) == u64::from_ne_bytes(*known))
        && lower(last) == u64::from_ne_bytes(*known_last)
}

#[inline]
fn lower(word: &[u8; 8]) -> u64 {
    u64::from_ne_bytes(*word) | 0x2020_2020_2020_2020
}

/// Returns true if a field of this name and class is dropped from trailer sections, including names
/// that imitate such a field.
#[inline]
pub(crate) fn is_dropped_from_trailers(name: &[u8], class: FieldClass) -> bool {
    ClassSet::DROPPED_FROM_TRAILERS.contains(class)
        || (class == FieldClass::Other && is_imitation(name))
}

/// Returns true if a name with underscores equals, with hyphens instead, a name that a proxy relies
/// on.
#[cold]
pub(crate) fn is_imitation(name: &[u8]) -> bool {
    /// The length of the longest name with a class.
    const LONGEST: usize = 25;
    let mut plain = [0; LONGEST];
    let length = name.len().min(LONGEST);
    for (plain, byte) in plain.iter_mut().zip(name) {
        *plain = if *byte == b'_' { b'-' } else { *byte };
    }
    let plain = &plain[..length];
    // A longer name can only have the prefix of a claim.
    if name.len() > LONGEST {
        return classify(plain) == FieldClass::XForwarded;
    }
    classify(plain) != FieldClass::Other || is(plain, b"x-client-cert")
}

/// Returns true if a name has an underscore. Tests eight bytes at a time: most names are too short
/// for a general search to pay off.
pub(crate) fn has_underscore(name: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let has = |word: &[u8; 8]| {
        // `_` becomes a zero byte, which borrows at the subtraction.
        let others = u64::from_ne_bytes(*word) ^ (ONES * b'_' as u64);
        others.wrapping_sub(ONES) & !others & HIGHEST != 0
    };
    let (words, rest) = name.as_chunks();
    words.iter().any(has)
        || match name.last_chunk() {
            // The last word overlaps the previous one.
            Some(last) => !rest.is_empty() && has(last),
            None => rest.contains(&b'_'),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names with a class.
    const NAMES: [(&str, FieldClass); 38] = [
        ("Host", FieldClass::Host),
        ("Connection", FieldClass::Connection),
        ("Content-Length", FieldClass::ContentLength),
        ("Transfer-Encoding", FieldClass::TransferEncoding),
        ("TE", FieldClass::Te),
        ("Trailer", FieldClass::Trailer),
        ("Upgrade", FieldClass::Upgrade),
        ("Expect", FieldClass::Expect),
        ("Keep-Alive", FieldClass::HopByHop),
        ("Proxy-Connection", FieldClass::HopByHop),
        ("Proxy-Authenticate", FieldClass::HopByHop),
        ("Proxy-Authentication-Info", FieldClass::HopByHop),
        ("Proxy-Authorization", FieldClass::HopByHop),
        ("Proxy-Features", FieldClass::HopByHop),
        ("Proxy-Instruction", FieldClass::HopByHop),
        ("Security-Scheme", FieldClass::HopByHop),
        ("ALPN", FieldClass::HopByHop),
        ("Close", FieldClass::HopByHop),
        ("HTTP2-Settings", FieldClass::HopByHop),
        ("Upgrade-Insecure-Requests", FieldClass::HopByHop),
        ("Alt-Svc", FieldClass::HopByHop),
        ("Forwarded", FieldClass::Forwarded),
        ("X-Forwarded-For", FieldClass::XForwardedFor),
        ("X-Forwarded-Host", FieldClass::XForwardedHost),
        ("X-Forwarded-Proto", FieldClass::XForwardedProto),
        ("X-Forwarded-Prefix", FieldClass::XForwardedPrefix),
        ("X-Forwarded-Port", FieldClass::XForwarded),
        ("X-Forwarded-", FieldClass::XForwarded),
        ("X-Real-IP", FieldClass::XForwarded),
        ("True-Client-IP", FieldClass::XForwarded),
        ("Authorization", FieldClass::Credentials),
        ("Cookie", FieldClass::Credentials),
        ("Set-Cookie", FieldClass::Credentials),
        ("Content-Type", FieldClass::Content),
        ("Content-Encoding", FieldClass::Content),
        ("Content-Range", FieldClass::Content),
        ("Date", FieldClass::Date),
        ("CDN-Loop", FieldClass::CdnLoop),
    ];

    #[test]
    fn names_have_their_class_in_any_case() {
        for (name, class) in NAMES {
            assert_eq!(classify(name.as_bytes()), class, "{name}");
            assert_eq!(classify(name.to_lowercase().as_bytes()), class, "{name}");
            assert_eq!(classify(name.to_uppercase().as_bytes()), class, "{name}");
        }
    }

    /// A key of session affinity in such a header would not arrive, or would break the message.
    #[test]
    fn names_with_a_class_carry_no_affinity_key() {
        let problems = |name: &str| {
            let config = serde_json::json!({ "Clusters": { "c": { "SessionAffinity": {
                "Enabled": true, "Policy": "CustomHeader", "AffinityKeyName": name } } } });
            let config = serde_json::from_value::<proxy_model::config::ProxyConfig>(config);
            let options = proxy_model::CompileOptions::default();
            let compiled = proxy_model::Snapshot::compile(config.unwrap(), &options);
            compiled.map_or_else(|problems| problems.to_string(), |_| String::new())
        };
        for (name, _) in NAMES {
            for name in [name.to_owned(), name.to_lowercase()] {
                assert!(problems(&name).contains("AffinityKeyName"), "{name}");
            }
        }
        for name in ["X-Affinity", "X-Forwarded", "X-Real-IPs", "Contents"] {
            assert_eq!(problems(name), "", "{name}");
        }
    }

    #[test]
    fn names_that_differ_in_a_letter_have_none() {
        for (name, class) in NAMES {
            for at in 0..name.len() {
                let mut other = name.as_bytes().to_vec();
                other[at] = if other[at] == b'q' { b'z' } else { b'q' };
                let other_class = classify(&other);
                assert!(
                    other_class == FieldClass::Other || other_class == FieldClass::XForwarded,
                    "{other:?} is {other_class:?}, as {name} is {class:?}"
                );
            }
        }
        for name in ["", "x", "X-Request-Id", "Accept", "User-Agent", "Hosts"] {
            assert_eq!(classify(name.as_bytes()), FieldClass::Other, "{name}");
        }
    }

    #[test]
    fn underscores_imitate() {
        for name in [
            "Transfer_Encoding",
            "content_length",
            "X_Forwarded_For",
            "X-Forwarded_Anything-that-is-quite-long",
            "X_Real_IP",
            "true_client_ip",
            "x_client_cert",
            "Content_Type",
        ] {
            assert!(is_imitation(name.as_bytes()), "{name}");
        }
        for name in ["x_request_id", "_", "transfer_encodings", "X_Forwarded"] {
            assert!(!is_imitation(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_field_is_small() {
        assert_eq!(size_of::<Field>(), 16);
    }

    #[test]
    fn an_underscore_is_seen_wherever_it_is() {
        // Bytes that differ by one bit or by one.
        for other in *b"-a^`\x7f" {
            for length in 1..=33 {
                let mut name = vec![other; length];
                assert!(!has_underscore(&name), "{name:?}");
                for at in 0..length {
                    name[at] = b'_';
                    assert!(has_underscore(&name), "{name:?}");
                    name[at] = other;
                }
            }
        }
        assert!(!has_underscore(b""));
    }
}
