//! The check that a regular expression is valid in Envoy's engine, RE2, too.
//!
//! It has to compile here, without syntax that RE2 lacks or interprets differently
//! (<https://github.com/google/re2/wiki/Syntax>). Syntax that only RE2 has, such as `\C` or `\Q…\E`, is
//! rejected: it can be written in another way.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassSetItem, Flag, FlagsItemKind, GroupKind, HexLiteralKind,
    LiteralKind, RepetitionKind, RepetitionRange, SpecialLiteralKind,
};

use super::re2_size;

/// The most repetitions that RE2 takes.
const MOST_REPETITIONS: u32 = 1000;

/// The characters that an expression is read as: bytes.
const LAST_CHARACTER: u32 = 0xff;

/// Maximum size of a program, in bytes. RE2's own default is 8 MiB, and half of it is kept for its other
/// tables.
const MOST_BYTES: usize = 4 << 20;

/// Returns an error if Envoy would reject the expression.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let ast = Parser::new()
        .parse(pattern)
        .map_err(|error| format!("is no regular expression: {}", error.kind()))?;
    ast::visit(&ast, Portable).map_err(str::to_owned)?;
    if !re2_size::fits_parsed(pattern, &ast) {
        return Err(format!(
            "has more than the {} instructions that Envoys take",
            re2_size::MOST
        ));
    }
    let built = regex::RegexBuilder::new(pattern)
        .size_limit(MOST_BYTES)
        .build();
    match built {
        Ok(_) => Ok(()),
        Err(regex::Error::CompiledTooBig(_)) => Err("is too large when it is compiled".to_owned()),
        Err(_) => Err("is no regular expression that can be compiled".to_owned()),
    }
}

/// Rejects syntax that RE2 does not support.
struct Portable;

impl ast::Visitor for Portable {
    type Output = ();
    type Err = &'static str;

    fn finish(self) -> Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Flags(set) => flags(&set.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(set) => flags(set),
                GroupKind::CaptureIndex(_) | GroupKind::CaptureName { .. } => Ok(()),
            },
            Ast::Repetition(repetition) => match &repetition.op.kind {
                RepetitionKind::Range(range) => repetitions(range),
                RepetitionKind::ZeroOrOne
                | RepetitionKind::ZeroOrMore
                | RepetitionKind::OneOrMore => {
                    // `a**` is an error there and means `(?:a*)*` here.
                    match &*repetition.ast {
                        Ast::Repetition(_) => Err("repeats a repetition, which RE2 rejects"),
                        _ => Ok(()),
                    }
                }
            },
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::WordBoundaryStart
                | AssertionKind::WordBoundaryEnd
                | AssertionKind::WordBoundaryStartAngle
                | AssertionKind::WordBoundaryEndAngle
                | AssertionKind::WordBoundaryStartHalf
                | AssertionKind::WordBoundaryEndHalf => {
                    Err("uses a word boundary that RE2 does not know")
                }
                _ => Ok(()),
            },
            Ast::Literal(literal) => self::literal(literal),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        match item {
            ClassSetItem::Bracketed(_) => Err("has a class in a class, which RE2 does not know"),
            ClassSetItem::Literal(literal) => self::literal(literal),
            ClassSetItem::Range(range) => {
                literal(&range.start)?;
                literal(&range.end)
            }
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(
        &mut self,
        _: &ast::ClassSetBinaryOp,
    ) -> Result<(), Self::Err> {
        Err("combines classes with `&&`, `--` or `~~`, which RE2 does not know")
    }
}

fn flags(set: &ast::Flags) -> Result<(), &'static str> {
    let known = |item: &ast::FlagsItem| match item.kind {
        FlagsItemKind::Negation => true,
        FlagsItemKind::Flag(flag) => matches!(
            flag,
            Flag::CaseInsensitive | Flag::MultiLine | Flag::DotMatchesNewLine | Flag::SwapGreed
        ),
    };
    match set.items.iter().all(known) {
        true => Ok(()),
        false => Err("sets a flag that RE2 does not know; it knows i, m, s and U"),
    }
}

fn repetitions(range: &RepetitionRange) -> Result<(), &'static str> {
    let most = match range {
        RepetitionRange::Exactly(most) | RepetitionRange::AtLeast(most) => *most,
        RepetitionRange::Bounded(_, most) => *most,
    };
    match most <= MOST_REPETITIONS {
        true => Ok(()),
        false => Err("repeats more than 1000 times, which RE2 rejects"),
    }
}

fn literal(literal: &ast::Literal) -> Result<(), &'static str> {
    match &literal.kind {
        LiteralKind::HexFixed(HexLiteralKind::UnicodeShort | HexLiteralKind::UnicodeLong)
        | LiteralKind::HexBrace(HexLiteralKind::UnicodeShort | HexLiteralKind::UnicodeLong) => {
            Err("writes a character as `\\u` or `\\U`, which RE2 does not know; it knows `\\x{…}`")
        }
        LiteralKind::HexBrace(HexLiteralKind::X) if u32::from(literal.c) > LAST_CHARACTER => Err(
            "writes a character beyond `\\x{ff}`, which Envoys reject; write the character itself",
        ),
        LiteralKind::Special(SpecialLiteralKind::Space) => {
            Err("escapes a space, which RE2 rejects")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_engines_know_passes() {
        for pattern in [
            "1|[yY]es|[tT]rue",
            "(?i)fix1",
            "(?i)a\\[b\\.c",
            "^/api/v[0-9]+/.*$",
            "[[:alpha:]]{1,15}",
            "\\x{41}\\x{ff}\\p{Greek}",
            "",
        ] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn what_re2_would_reject_is_rejected() {
        for pattern in [
            "(?i)fix[",
            "a(b",
            "*",
            "a**",
            "(?=a)b",
            "(a)\\1",
            "a{1001}",
            "(?i)abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
            "[a-z]{100}",
            "\\x{100}",
            "[a&&b]",
            "[a[b]]",
            "(?x)a b",
            "\\u0041",
            "\\b{start}a",
            "\\<a",
            "(?:(?:a{1000}){1000}){1000}",
        ] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
    }
}
