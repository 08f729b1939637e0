//! Generated parts of pages, between two marks.

/// The marks of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

impl Marks {
    /// Returns the part of a page between the marks.
    ///
    /// # Errors
    ///
    /// Fails if the page lacks a mark.
    pub(crate) fn part<'a>(&self, page: &'a str) -> Result<&'a str, String> {
        Ok(self.split(page)?.1)
    }

    /// Returns the page with another part between the marks.
    ///
    /// # Errors
    ///
    /// Fails if the page lacks a mark.
    pub(crate) fn replace(&self, page: &str, part: &str) -> Result<String, String> {
        let (before, _, after) = self.split(page)?;
        let Self { begin, end } = self;
        Ok(format!("{before}{begin}\n\n{part}\n{end}{after}"))
    }

    fn split<'a>(&self, page: &'a str) -> Result<(&'a str, &'a str, &'a str), String> {
        let missing = |mark| format!("the page lacks the line `{mark}`");
        let begin = page.split_once(self.begin);
        let (before, rest) = begin.ok_or_else(|| missing(self.begin))?;
        let end = rest.split_once(self.end);
        let (part, after) = end.ok_or_else(|| missing(self.end))?;
        Ok((before, part, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks {
        begin: "<!-- begin -->",
        end: "<!-- end -->",
    };

    #[test]
    fn only_the_part_is_replaced() {
        let page = "head\n<!-- begin -->\n\nold\n\n<!-- end -->\ntail\n";
        assert_eq!(MARKS.part(page), Ok("\n\nold\n\n"));
        assert_eq!(
            MARKS.replace(page, "new\n").as_deref(),
            Ok("head\n<!-- begin -->\n\nnew\n\n<!-- end -->\ntail\n")
        );
        let why = MARKS.replace("head\n<!-- begin -->\n", "new").unwrap_err();
        assert_eq!(why, "the page lacks the line `<!-- end -->`");
    }
}
