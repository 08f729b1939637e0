//! Dates and times as .NET's invariant culture reads them, as far as they make sense in a path.
//!
//! A date is `2016-12-31`, `2016-12`, `12-31-2016` (the month first), with `-`, `/` or `.` as the separator, or
//! `31 Dec 2016` or `December 31, 2016`, the day of the week before it if wanted. A time is `7:32`, `19:32:05.25` or
//! `7:32 pm`, after a space or a `T`, then `Z` or an offset such as `+02:00` if wanted. Either may be alone. .NET knows
//! more forms, which no path has been seen to use.

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Returns true if `text` is a date, a time or both.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut reader = Reader { rest: text.trim() };
    let dated = reader.attempt(Reader::date);
    let timed =
        reader.attempt(|reader| (!dated || reader.spaces() || reader.letter('t')) && reader.time());
    (dated || timed) && reader.rest.is_empty()
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Keeps the position after `read` if it succeeds, else returns to the one before.
    fn attempt(&mut self, read: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.rest;
        let done = read(self);
        if !done {
            self.rest = before;
        }
        done
    }

    fn date(&mut self) -> bool {
        self.attempt(Self::numeric_date) || self.attempt(Self::written_date)
    }

    fn numeric_date(&mut self) -> bool {
        let Some((first, digits)) = self.number(4) else {
            return false;
        };
        let Some(separator) = ['-', '/', '.'].into_iter().find(|c| self.symbol(*c)) else {
            return false;
        };
        let Some((second, 1..=2)) = self.number(4) else {
            return false;
        };
        let third = if self.symbol(separator) {
            let third = self.number(4);
            if third.is_none() {
                return false;
            }
            third
        } else {
            None
        };
        match (digits, third) {
            (4, None) => is_day(first, second, 1),
            (4, Some((third, 1..=2))) => is_day(first, second, third),
            (1..=2, Some(third)) => is_day_of(third, first, second),
            _ => false,
        }
    }

    /// Reads `[Sat,] 31 December 2016` or `[Sat,] Dec 31, 2016`.
    fn written_date(&mut self) -> bool {
        if self.attempt(|reader| reader.name(&WEEKDAYS).is_some()) {
            self.symbol(',');
            self.spaces();
        }
        let month = self.name(&MONTHS);
        self.spaces();
        let Some((day, 1..=2)) = self.number(4) else {
            return false;
        };
        self.symbol(',');
        self.spaces();
        let month = match month {
            Some(month) => month,
            None => match self.name(&MONTHS) {
                Some(month) => month,
                None => return false,
            },
        };
        self.symbol(',');
        self.spaces();
        self.number(4)
            .is_some_and(|year| is_day_of(year, month, day))
    }

    fn time(&mut self) -> bool {
        let Some((hour, 1..=2)) = self.number(2) else {
            return false;
        };
        let mut has_minutes = false;
        if self.symbol(':') {
            has_minutes = true;
            if !matches!(self.number(2), Some((0..=59, 1..=2))) {
                return false;
            }
            if self.symbol(':') {
                if !matches!(self.number(2), Some((0..=59, 1..=2))) {
                    return false;
                }
                if self.symbol('.') && self.number(7).is_none() {
                    return false;
                }
            }
        }
        let half = self.attempt(|reader| {
            reader.spaces();
            let half = reader.letter('a') || reader.letter('p');
            reader.letter('m');
            half
        });
        if !(has_minutes || half) || !(if half { 0..=12 } else { 0..=23 }).contains(&hour) {
            return false;
        }
        self.attempt(|reader| {
            reader.spaces();
            reader.letter('z') || reader.offset()
        });
        true
    }

    /// Reads `+2` or `+02:00`.
    fn offset(&mut self) -> bool {
        (self.symbol('+') || self.symbol('-'))
            && matches!(self.number(2), Some((0..=14, 1..=2)))
            && (!self.symbol(':') || matches!(self.number(2), Some((0..=59, 1..=2))))
    }

    /// Reads a number of at most `most` digits, and returns it with their count.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || digits > most {
            return None;
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Some((number.parse().ok()?, digits))
    }

    /// Reads a name of at least three letters, and returns its position from 1.
    fn name(&mut self, names: &[&str]) -> Option<u32> {
        let letters = self
            .rest
            .bytes()
            .take_while(u8::is_ascii_alphabetic)
            .count();
        let (word, rest) = self.rest.split_at(letters);
        let position = names.iter().position(|name| {
            name.eq_ignore_ascii_case(word) || name[..3].eq_ignore_ascii_case(word)
        })?;
        self.rest = rest;
        u32::try_from(position + 1).ok()
    }

    fn symbol(&mut self, symbol: char) -> bool {
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn letter(&mut self, letter: char) -> bool {
        self.symbol(letter) || self.symbol(letter.to_ascii_uppercase())
    }

    fn spaces(&mut self) -> bool {
        let rest = self.rest.trim_start();
        let any = rest.len() < self.rest.len();
        self.rest = rest;
        any
    }
}

/// Returns true if a day exists in a year that is written with two or four digits.
fn is_day_of((year, digits): (u32, usize), month: u32, day: u32) -> bool {
    match digits {
        2 => is_day(2000 + year, month, day),
        4 => is_day(year, month, day),
        _ => false,
    }
}

/// Returns true if a day exists in the Gregorian calendar, which begins with the year 1 in .NET.
fn is_day(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=last).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_recognised() {
        for text in [
            "2016-12-31",
            "2016-12-31 7:32pm",
            "2016-12-31 7:32 PM",
            "2016-12-31T23:59:59.1234567Z",
            "2016-12-31T23:59:59+02:00",
            "2016-12-31 23:59 -8",
            "2016-12",
            "2016/2/29",
            "12-31-2016",
            "12.31.16",
            "12/31/2016 07:00",
            "31 Dec 2016",
            "Sat, 31 December 2016 10:00:00",
            "December 31, 2016",
            "7:32",
            "7 pm",
            " 2016-12-31 ",
        ] {
            assert!(is_date_time(text), "{text:?}");
        }
    }

    #[test]
    fn other_text_is_not_a_date() {
        for text in [
            "",
            "7",
            "2016",
            "2016-13-01",
            "2015-02-29",
            "1900-02-29",
            "0000-01-01",
            "31-12-2016",
            "2016-12-31T",
            "2016-12-31T7",
            "2016-12-31 24:00",
            "2016-12-31 13:00pm",
            "2016-12-31x",
            "2016-12/31",
            "12-31-2016-1",
            "99999-01-01",
            "monday",
            "foo",
            "-",
            "7:60",
            "ä-1-1",
        ] {
            assert!(!is_date_time(text), "{text:?}");
        }
    }
}
