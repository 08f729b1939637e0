//! Numbers as .NET's invariant culture reads them.

/// The largest `System.Decimal`: 2⁹⁶ − 1.
const LARGEST_DECIMAL: u128 = (1 << 96) - 1;

/// Removes the white space that .NET allows around a number.
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r'])
}

/// An integer, with a sign if there is one.
pub(super) fn int(text: &str) -> Option<i64> {
    trimmed(text).parse().ok()
}

/// `1,234.5`, with a sign before or after.
pub(super) fn is_decimal(text: &str) -> bool {
    let text = trimmed(text);
    let unsigned = match text.strip_prefix(['+', '-']) {
        Some(rest) => rest,
        None => trimmed(text.strip_suffix(['+', '-']).unwrap_or(text)),
    };
    let Some(whole) = whole_digits(unsigned) else {
        return false;
    };
    whole
        .bytes()
        .filter(u8::is_ascii_digit)
        .try_fold(0_u128, |value, digit| {
            let value = value * 10 + u128::from(digit - b'0');
            (value <= LARGEST_DECIMAL).then_some(value)
        })
        .is_some()
}

/// `1,234.5e6`, with a sign before; or infinity, or not a number.
pub(super) fn is_float(text: &str) -> bool {
    let text = trimmed(text);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("nan") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    whole_digits(mantissa).is_some()
        && exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        })
}

/// The digits before the point, among which commas may stand, if there are digits at all and nothing else.
fn whole_digits(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let any = whole
        .bytes()
        .chain(fraction.bytes())
        .any(|b| b.is_ascii_digit());
    (any && !whole.starts_with(',')
        && whole.bytes().all(|b| b.is_ascii_digit() || b == b',')
        && fraction.bytes().all(|b| b.is_ascii_digit()))
    .then_some(whole)
}

/// 32 hexadecimal digits, alone or in groups of 8, 4, 4, 4 and 12 with `-` between them; the latter also in braces or
/// parentheses.
pub(super) fn is_guid(text: &str) -> bool {
    let text = text.trim();
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    if is_hex(text, 32) {
        return true;
    }
    let groups = match text.as_bytes() {
        [b'{', .., b'}'] | [b'(', .., b')'] => &text[1..text.len() - 1],
        _ => text,
    };
    let mut groups = groups.split('-');
    [8, 4, 4, 4, 12]
        .into_iter()
        .all(|length| groups.next().is_some_and(|group| is_hex(group, length)))
        && groups.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, value) in [
            ("7", Some(7)),
            (" -7 ", Some(-7)),
            ("+007", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("- 7", None),
            ("1.0", None),
            ("1,000", None),
            ("\u{663}", None),
        ] {
            assert_eq!(int(text), value, "{text:?}");
        }
    }

    #[test]
    fn decimals() {
        for text in [
            "1",
            "-1.5",
            "1.5-",
            "+.5",
            "5.",
            "1,234,567.89",
            " 1 ",
            "1,2",
            "79228162514264337593543950335",
            "0.00000000000000000000000000000000001",
        ] {
            assert!(is_decimal(text), "{text:?}");
        }
        for text in [
            "",
            ".",
            "-",
            "1e5",
            "1.5.5",
            ",1",
            "1.5,5",
            "+1-",
            "NaN",
            "79228162514264337593543950336",
            "0x1",
        ] {
            assert!(!is_decimal(text), "{text:?}");
        }
    }

    #[test]
    fn floats() {
        for text in [
            "1",
            "-1.5",
            "1,234.5E+6",
            ".5e-3",
            "1e999",
            "NaN",
            "-infinity",
            " 5. ",
        ] {
            assert!(is_float(text), "{text:?}");
        }
        for text in ["", ".", "e5", "1e", "1e+", "1.5-", "inf", "1e5.5", "0x1p3"] {
            assert!(!is_float(text), "{text:?}");
        }
    }

    #[test]
    fn guids() {
        for text in [
            "CD2C1638-1638-72D5-1638-DEADBEEF1638",
            "{CD2C1638-1638-72D5-1638-DEADBEEF1638}",
            "(cd2c1638-1638-72d5-1638-deadbeef1638)",
            "cd2c1638163872d51638deadbeef1638",
        ] {
            assert!(is_guid(text), "{text:?}");
        }
        for text in [
            "",
            "{}",
            "CD2C1638-1638-72D5-1638-DEADBEEF163",
            "CD2C1638-1638-72D5-1638-DEADBEEF1638-",
            "{CD2C1638-1638-72D5-1638-DEADBEEF1638)",
            "{cd2c1638163872d51638deadbeef1638}",
            "GD2C1638-1638-72D5-1638-DEADBEEF1638",
        ] {
            assert!(!is_guid(text), "{text:?}");
        }
    }
}
