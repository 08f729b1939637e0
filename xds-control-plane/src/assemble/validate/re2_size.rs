//! The size of RE2's program for an expression. Envoys reject expressions with more than 100 instructions,
//! unless the runtime key `re2.max_program_size.error_level` is set, and with them the whole route
//! configuration.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassAsciiKind, ClassSet, ClassSetItem, GroupKind, RepetitionKind, RepetitionRange,
};

/// Maximum number of instructions that Envoys accept.
pub(crate) const MOST: usize = 100;

/// Instructions of every program.
const FRAME: usize = 4;

/// Returns true if Envoys accept an expression.
pub(crate) fn fits(regex: &str) -> bool {
    Parser::new()
        .parse(regex)
        .is_ok_and(|ast| fits_parsed(regex, &ast))
}

/// Returns true if a parsed expression is small enough.
pub(super) fn fits_parsed(regex: &str, ast: &Ast) -> bool {
    let measure = Measure {
        folds_case: folds_case(regex),
    };
    FRAME.saturating_add(measure.size(ast)) <= MOST
}

/// Returns true if case is ignored anywhere. The parts that do not ignore it are then counted too high.
fn folds_case(regex: &str) -> bool {
    let flags = |after: &str| {
        let mut flags = after.chars().take_while(|c| "imsU-".contains(*c));
        flags.any(|flag| flag == 'i')
    };
    regex.split("(?").skip(1).any(flags)
}

/// Instructions of a class of Unicode. Envoys know its first 256 characters only, in at most this number of pieces.
const UNICODE_CLASS: usize = 24;

/// Instructions of `\W`, the largest class of Perl.
const PERL_CLASS: usize = 5;

struct Measure {
    folds_case: bool,
}

impl Measure {
    /// Returns the number of instructions that RE2 makes, or a few more. Envoys read expressions byte by
    /// byte.
    fn size(&self, ast: &Ast) -> usize {
        match ast {
            Ast::Flags(_) => 0,
            Ast::Literal(literal) => literal.c.len_utf8(),
            Ast::Dot(_) => 2,
            Ast::ClassPerl(_) => PERL_CLASS,
            Ast::ClassUnicode(_) => UNICODE_CLASS,
            Ast::Assertion(_) | Ast::Empty(_) => 1,
            Ast::ClassBracketed(class) => match &class.kind {
                ClassSet::Item(item) => {
                    let mut bytes = ByteClass::default();
                    bytes.add(item);
                    bytes.pieces(self.folds_case, class.negated)
                }
                // RE2 has no set operations, so such an expression is rejected by its size.
                ClassSet::BinaryOp(_) => MOST,
            },
            Ast::Group(group) => {
                let marks = match group.kind {
                    GroupKind::NonCapturing(_) => 0,
                    _ => 2,
                };
                self.size(&group.ast).saturating_add(marks)
            }
            Ast::Alternation(alternatives) => self.sum(&alternatives.asts),
            Ast::Concat(parts) => self.sum(&parts.asts),
            Ast::Repetition(repetition) => {
                let one = self.size(&repetition.ast);
                let (least, most) = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne => return one.saturating_add(2),
                    RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => {
                        return one.saturating_add(1);
                    }
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

    fn sum(&self, asts: &[Ast]) -> usize {
        let sizes = asts.iter().map(|ast| self.size(ast));
        sizes.fold(0, usize::saturating_add)
    }
}

/// The bytes of a class in brackets.
struct ByteClass {
    has: [bool; 256],
    /// Number of further pieces.
    more: usize,
}

impl Default for ByteClass {
    fn default() -> Self {
        Self {
            has: [false; 256],
            more: 0,
        }
    }
}

impl ByteClass {
    fn add(&mut self, item: &ClassSetItem) {
        match item {
            ClassSetItem::Union(union) => union.items.iter().for_each(|item| self.add(item)),
            ClassSetItem::Literal(literal) => {
                let mut buffer = [0; 4];
                let bytes = literal.c.encode_utf8(&mut buffer).as_bytes();
                self.add_where(|byte| bytes.contains(&byte));
            }
            ClassSetItem::Range(range) => self.add_range(range.start.c, range.end.c),
            ClassSetItem::Perl(_) => self.more += PERL_CLASS,
            ClassSetItem::Ascii(class) => {
                let is_in = |byte: u8| is_of(&class.kind, byte) != class.negated;
                self.add_where(is_in);
            }
            ClassSetItem::Unicode(_) => self.more += UNICODE_CLASS,
            ClassSetItem::Bracketed(_) => self.more += MOST,
            ClassSetItem::Empty(_) => {}
        }
    }

    fn add_where(&mut self, is_in: impl Fn(u8) -> bool) {
        for (byte, has) in (0..=u8::MAX).zip(&mut self.has) {
            *has |= is_in(byte);
        }
    }

    /// Adds a range of characters, as a range from the last byte of the first to the first byte of the
    /// last, with the other bytes beside it.
    fn add_range(&mut self, first: char, last: char) {
        let (mut one, mut other) = ([0; 4], [0; 4]);
        let first = first.encode_utf8(&mut one).as_bytes();
        let last = last.encode_utf8(&mut other).as_bytes();
        let (Some((from, before)), Some((to, after))) = (first.split_last(), last.split_first())
        else {
            return;
        };
        let beside = |byte: u8| before.contains(&byte) || after.contains(&byte);
        self.add_where(|byte| beside(byte) || (*from..=*to).contains(&byte));
    }

    /// Returns the number of byte ranges that it consists of.
    fn pieces(mut self, folds_case: bool, is_negated: bool) -> usize {
        if folds_case {
            let before = self.has;
            self.add_where(|byte| {
                let other = if byte.is_ascii_lowercase() {
                    byte.to_ascii_uppercase()
                } else {
                    byte.to_ascii_lowercase()
                };
                before.get(usize::from(other)).is_some_and(|has| *has)
            });
        }
        let mut was_in = false;
        let mut pieces = 0;
        for has in self.has {
            let is_in = has != is_negated;
            pieces += usize::from(is_in && !was_in);
            was_in = is_in;
        }
        pieces + self.more + usize::from(is_negated && self.more > 0)
    }
}

fn is_of(kind: &ClassAsciiKind, byte: u8) -> bool {
    match kind {
        ClassAsciiKind::Alnum => byte.is_ascii_alphanumeric(),
        ClassAsciiKind::Alpha => byte.is_ascii_alphabetic(),
        ClassAsciiKind::Ascii => byte.is_ascii(),
        ClassAsciiKind::Blank => matches!(byte, b' ' | b'\t'),
        ClassAsciiKind::Cntrl => byte.is_ascii_control(),
        ClassAsciiKind::Digit => byte.is_ascii_digit(),
        ClassAsciiKind::Graph => byte.is_ascii_graphic(),
        ClassAsciiKind::Lower => byte.is_ascii_lowercase(),
        ClassAsciiKind::Print => matches!(byte, b' '..=b'~'),
        ClassAsciiKind::Punct => byte.is_ascii_punctuation(),
        ClassAsciiKind::Space => matches!(byte, b' ' | b'\t'..=b'\r'),
        ClassAsciiKind::Upper => byte.is_ascii_uppercase(),
        ClassAsciiKind::Word => byte.is_ascii_alphanumeric() || byte == b'_',
        ClassAsciiKind::Xdigit => byte.is_ascii_hexdigit(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Combined with 120 letters, which makes Envoy 1.40 report the size.
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
            ("(|x)", 4),
            ("x||y", 3),
            ("x{0,5}", 10),
            ("(?:xy){3,7}", 18),
            ("[^[:alpha:]]", 3),
            ("[[:^alpha:]]", 3),
            ("\\w", 3),
            ("\\S", 4),
            ("\\W", 5),
            ("[а-яё]", 3),
            ("[^/а-я]", 4),
            ("(?i)Ünïcode", 9),
            ("1|[yY]es|[tT]rue", 8),
        ] {
            let ast = Parser::new().parse(regex).unwrap();
            let folds_case = folds_case(regex);
            let found = Measure { folds_case }.size(&ast);
            assert!(
                (said..=said + 5).contains(&found),
                "{regex}: {found}, not {said}"
            );
        }
    }
}
