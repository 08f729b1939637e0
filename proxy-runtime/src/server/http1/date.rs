//! The `Date` of responses (RFC 9110 section 6.6.1).

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::server::civil::http_date;

/// Length of a date in the preferred form of RFC 9110 section 5.6.7.
const LENGTH: usize = 29;

thread_local! {
    static DATE: RefCell<Cached> = const { RefCell::new(Cached { text: [0; LENGTH], until: None }) };
}

struct Cached {
    text: [u8; LENGTH],
    until: Option<Instant>,
}

/// Appends the present date, which is made once a second.
pub(crate) fn write_date(out: &mut Vec<u8>) {
    // A thread that ends writes no responses.
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
        self.text = http_date(since.as_secs());
        let rest = Duration::from_secs(1) - Duration::from_nanos(since.subsec_nanos().into());
        self.until = Some(now + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
