//! Accounts in places that are lent.

use std::ops::{Deref, DerefMut};

use crate::error::ForwardErrorKind;
use crate::response::Account;
use crate::spare::{Lend, Spare};

/// Places that a thread keeps; as many as requests are under way at a time on a busy one.
const MOST: usize = 256;

/// Where an account is while it is open. A block of its own, since it is handed from the request to its response.
type Place = Box<Option<Account>>;

thread_local! {
    static SPARE: Spare<Place, MOST> = const { Spare::new() };
}

/// An account that is open. Its place is lent by the thread that opens it, and kept by the one that it ends on.
pub(crate) struct OpenAccount(Option<Place>);

const OPEN: &str = "an account is there until it is dropped";

impl OpenAccount {
    pub(crate) fn new(account: Account) -> Self {
        let mut place = SPARE.lend().unwrap_or_default();
        *place = Some(account);
        Self(Some(place))
    }

    /// The response, or the tunnel, has ended.
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>) {
        self.settle(error);
    }
}

impl Deref for OpenAccount {
    type Target = Account;

    fn deref(&self) -> &Account {
        self.0.as_deref().and_then(Option::as_ref).expect(OPEN)
    }
}

impl DerefMut for OpenAccount {
    fn deref_mut(&mut self) -> &mut Account {
        self.0.as_deref_mut().and_then(Option::as_mut).expect(OPEN)
    }
}

impl Drop for OpenAccount {
    fn drop(&mut self) {
        let Some(mut place) = self.0.take() else {
            return;
        };
        // It may end together with another one, which comes by here itself.
        *place = None;
        SPARE.keep(place);
    }
}
