//! How large RE2's program for an expression becomes. Envoys refuse what has more than 100 instructions, unless the runtime
//! key `re2.max_program_size.error_level` says otherwise, and with it the whole route configuration.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, ClassSet, ClassSetItem, GroupKind, RepetitionKind, RepetitionRange};

use super::report::Inexpressible;

/// What Envoys take.
const MOST: usize = 100;

/// Instructions of every program.
const FRAME: usize = 4;

/// Refuses an expression that is too large for Envoys.
pub(super) fn check(key: &str, regex: &str) -> Result<(), Inexpressible> {
    match fits(regex) {
        true => Ok(()),
        false => Err(Inexpressible::new(
            key,
            format!(
                "the expression that says it has more than the {MOST} instructions that Envoys take"
            ),
        )),
    }
}

/// Whether Envoys take an expression.
pub(super) fn fits(regex: &str) -> bool {
    Parser::new()
        .parse(regex)
        .is_ok_and(|ast| FRAME + size(&ast) <= MOST)
}

/// As many instructions as RE2 makes, or a few more.
fn size(ast: &Ast) -> usize {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) => 0,
        Ast::Literal(literal) => literal.c.len_utf8(),
        Ast::Dot(_) | Ast::ClassPerl(_) | Ast::ClassUnicode(_) => 2,
        Ast::Assertion(_) => 1,
        Ast::ClassBracketed(class) => match (&class.kind, class.negated) {
            (_, true) => 2,
            (ClassSet::Item(item), false) => items(item),
            (ClassSet::BinaryOp(_), false) => MOST,
        },
        Ast::Group(group) => {
            let marks = match group.kind {
                GroupKind::NonCapturing(_) => 0,
                _ => 2,
            };
            marks + size(&group.ast)
        }
        Ast::Alternation(alternatives) => alternatives.asts.iter().map(size).sum(),
        Ast::Concat(parts) => parts.asts.iter().map(size).sum(),
        Ast::Repetition(repetition) => {
            let one = size(&repetition.ast);
            let (least, most) = match &repetition.op.kind {
                RepetitionKind::ZeroOrOne => return one + 2,
                RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => return one + 1,
                RepetitionKind::Range(RepetitionRange::Exactly(times)) => (*times, *times),
                RepetitionKind::Range(RepetitionRange::AtLeast(times)) => {
                    (*times, times.saturating_add(1))
                }
                RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => (*least, *most),
            };
            let count = |times: u32| usize::try_from(times).unwrap_or(usize::MAX);
            one.saturating_mul(count(most))
                .saturating_add(count(most.saturating_sub(least)))
                .saturating_add(1)
        }
    }
}

fn items(item: &ClassSetItem) -> usize {
    match item {
        ClassSetItem::Union(union) => union.items.iter().map(items).sum(),
        ClassSetItem::Bracketed(_) | ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside 120 letters, which is how Envoy 1.40 can be made to say it.
    #[test]
    fn sizes_are_at_least_those_that_envoy_says() {
        for (regex, said) in [
            ("[^/]", 2),
            (".*", 2),
            ("[^/]+", 3),
            ("(?i:b)", 1),
            ("(?:B|%42|b|%62)", 8),
            ("%[cC]3", 3),
            ("(?:/.*)?", 5),
            ("/?", 2),
            ("(?:[^&]*&)*", 4),
            ("(?:[^&%]|%[0-9a-fA-F]{2})*", 7),
            ("[0-9]{1,19}", 37),
            ("[^\"]*(?:\"[^\"]*\"[^\"]*)*,", 11),
            ("(x)", 3),
        ] {
            let found = size(&Parser::new().parse(regex).unwrap());
            assert!(
                (said..=said + 5).contains(&found),
                "{regex}: {found}, not {said}"
            );
        }
    }
}
