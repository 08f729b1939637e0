//! The `Date` of responses (RFC 9110 section 6.6.1).

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The length of a date in the preferred format of RFC 9110 section 5.6.7.
const LENGTH: usize = 29;

/// The end of the year 9999, the last date of that format.
const LAST: u64 = 253_402_300_799;

thread_local! {
    static DATE: RefCell<Cached> = const { RefCell::new(Cached { text: [0; LENGTH], until: None }) };
}

struct Cached {
    text: [u8; LENGTH],
    until: Option<Instant>,
}

/// Appends the current date, which is formatted once a second.
pub(crate) fn write_date(out: &mut Vec<u8>) {
    // A thread at its end writes no responses.
    let _ = DATE.try_with(|date| {
        let mut date = date.borrow_mut();
        date.renew(Instant::now());
        out.extend_from_slice(&date.text);
    });
}

impl Cached {
    fn renew(&mut self, now: Instant) {
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.write(since.as_secs());
        // Valid until the next full second.
        let rest = Duration::from_secs(1) - Duration::from_nanos(since.subsec_nanos().into());
        self.until = Some(now + rest);
    }

    fn write(&mut self, seconds: u64) {
        let moment = UNIX_EPOCH + Duration::from_secs(seconds.min(LAST));
        // The text exactly fits the buffer.
        let _ = write!(&mut self.text[..], "{}", HttpDate::from(moment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_http_has_them() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let mut cached = Cached {
                text: [0; LENGTH],
                until: None,
            };
            cached.write(seconds);
            assert_eq!(cached.text, text.as_bytes());
        }
    }

    #[test]
    fn a_date_is_made_once_a_second() {
        let mut cached = Cached {
            text: [0; LENGTH],
            until: None,
        };
        let now = Instant::now();
        cached.renew(now);
        assert!(cached.text.ends_with(b" GMT"));
        let until = cached.until.unwrap();
        assert!(until > now && until <= now + Duration::from_secs(1));
        cached.text = [b'x'; LENGTH];
        cached.renew(until - Duration::from_nanos(1));
        assert_eq!(cached.text, [b'x'; LENGTH], "still good");
        cached.renew(until);
        assert_ne!(cached.text, [b'x'; LENGTH]);
    }
}
