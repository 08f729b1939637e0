//! Licence expressions of SPDX, as manifests have them.

/// Whether somebody who accepts what `accepted` says can accept a package under `expression`.
///
/// `AND` binds tighter than `OR`; a `/`, from before expressions, is an `OR`. A licence with an exception (`WITH`) is
/// accepted when the licence is: an exception only grants more. Anything that is no expression is not accepted.
pub(crate) fn is_accepted(expression: &str, accepted: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = Words {
        rest: spaced.split_whitespace().collect(),
        accepted,
    };
    words.rest.reverse();
    words.any() == Some(true) && words.rest.is_empty()
}

/// What is left to read, the next word last.
struct Words<'a> {
    rest: Vec<&'a str>,
    accepted: &'a dyn Fn(&str) -> bool,
}

impl Words<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is = self.rest.last() == Some(&word);
        if is {
            self.rest.pop();
        }
        is
    }

    fn any(&mut self) -> Option<bool> {
        let mut accepted = self.all()?;
        while self.next_is("OR") {
            accepted |= self.all()?;
        }
        Some(accepted)
    }

    fn all(&mut self) -> Option<bool> {
        let mut accepted = self.one()?;
        while self.next_is("AND") {
            accepted &= self.one()?;
        }
        Some(accepted)
    }

    fn one(&mut self) -> Option<bool> {
        if self.next_is("(") {
            let accepted = self.any()?;
            return self.next_is(")").then_some(accepted);
        }
        let license = self
            .rest
            .pop()
            .filter(|word| !matches!(*word, "OR" | "AND" | ")" | "WITH"))?;
        if self.next_is("WITH") {
            self.rest.pop()?;
        }
        Some((self.accepted)(license))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_accepted_by_what_they_leave_open() {
        let accepted = |name: &str| ["MIT", "ISC", "Apache-2.0"].contains(&name);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only AND MIT OR ISC", true),
            ("GPL-3.0-only AND (MIT OR ISC)", false),
            ("ISC AND (Apache-2.0 OR GPL-3.0-only) AND MIT", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true),
            ("GPL-2.0-only WITH Classpath-exception-2.0", false),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT ISC", false),
            ("MIT)", false),
        ] {
            assert_eq!(is_accepted(expression, &accepted), expected, "{expression}");
        }
    }
}
