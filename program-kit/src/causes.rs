use std::error::Error;

/// The maximum number of causes. An error that names itself as its cause would otherwise be endless.
const MOST_CAUSES: usize = 16;

/// Returns an error with its causes, separated by `: `.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..MOST_CAUSES {
        let Some(error) = cause else { break };
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    /// An error that is its own cause.
    #[derive(Debug)]
    struct Endless;

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("again")
        }
    }

    impl Error for Endless {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&Self)
        }
    }

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("connecting failed")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn every_cause_is_named() {
        let error = Outer(io::Error::other("refused"));
        assert_eq!(with_causes(&error), "connecting failed: refused");
    }

    #[test]
    fn causes_that_never_end_are_cut_off() {
        assert_eq!(
            with_causes(&Endless),
            vec!["again"; MOST_CAUSES + 1].join(": ")
        );
    }
}
