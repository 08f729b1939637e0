use super::ApiError;
use crate::hosting::Span;

/// The text for an infinite duration: the longest .NET time span.
const INFINITE: &str = "P10675199DT2H48M5.4775807S";
/// The same in milliseconds. Any longer duration is infinite, too.
const INFINITE_MILLISECONDS: u128 = 922_337_203_685_477;

/// Writes a length of time as ISO 8601, `PT0H1M30S`.
pub(crate) fn print_duration(duration: Span) -> String {
    let milliseconds = duration.as_millis();
    if u128::from(milliseconds) >= INFINITE_MILLISECONDS {
        return INFINITE.to_owned();
    }
    let seconds = milliseconds / 1_000;
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let days = match days {
        0 => String::new(),
        days => format!("{days}D"),
    };
    let fraction = match milliseconds % 1_000 {
        0 => String::new(),
        milliseconds => format!(".{milliseconds:03}")
            .trim_end_matches('0')
            .to_owned(),
    };
    format!("P{days}T{hours}H{minutes}M{seconds}{fraction}S")
}

/// Parses a duration like the gateway: ISO 8601 in days and smaller units, and **with** a `T`, so that
/// `PT24H` is valid and `P1D` is not.
///
/// # Errors
///
/// `E_INVALIDARG` for anything else.
pub(crate) fn parse_duration(text: &str) -> Result<Span, ApiError> {
    let milliseconds = milliseconds(text).ok_or_else(|| {
        ApiError::invalid(format!(
            "`{text}` is not a length of time: PT1M30S is, with a T in front of hours, minutes and seconds"
        ))
    })?;
    Ok(u64::try_from(milliseconds)
        .ok()
        .filter(|_| milliseconds < INFINITE_MILLISECONDS)
        .map_or(Span::INFINITE, Span::from_millis))
}

fn milliseconds(text: &str) -> Option<u128> {
    let (days, time) = text.strip_prefix('P')?.split_once('T')?;
    let mut total: u128 = 0;
    if !days.is_empty() {
        total += whole(days.strip_suffix('D')?)? * 86_400_000;
    }
    let mut rest = time;
    let mut seen = false;
    for (unit, worth) in [('H', 3_600_000), ('M', 60_000)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            total += whole(number)? * worth;
            rest = behind;
            seen = true;
        }
    }
    if let Some((number, behind)) = rest.split_once('S') {
        let (seconds, fraction) = number.split_once('.').unwrap_or((number, "0"));
        whole(fraction)?;
        let fraction: String = fraction.chars().chain("00".chars()).take(3).collect();
        total += whole(seconds)? * 1_000 + whole(&fraction)?;
        rest = behind;
        seen = true;
    }
    (seen && rest.is_empty()).then_some(total)
}

/// Parses a number of at most eighteen digits, so that no product above overflows.
fn whole(digits: &str) -> Option<u128> {
    let good = (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    good.then(|| digits.parse().ok()).flatten()
}
