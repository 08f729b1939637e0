//! Mutations of inputs: the work of a fuzzer, without one.

/// Generates inputs from seeds, the same ones in every run.
#[derive(Clone, Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    /// Pieces of all seeds, for insertion elsewhere.
    words: Vec<&'a [u8]>,
    state: u64,
}

/// Bytes with a special meaning in many formats.
const SPECIAL: &[&[u8]] = &[
    b"",
    b"/",
    b"//",
    b"{",
    b"}",
    b"{{",
    b"}}",
    b"*",
    b"**",
    b"?",
    b":",
    b"=",
    b".",
    b"..",
    b"%",
    b"%2F",
    b"%00",
    b"%41",
    b"%zz",
    b"\"",
    b"\\",
    b"[",
    b"]",
    b"[0]",
    b",",
    b";",
    b"|",
    b"~",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e999",
    b"null",
    b"true",
    b"\n",
    b"\r",
    b"\0",
    b"\t",
    b" ",
    b"\xff",
    b"\xc3\xa4",
    b"\xc3\x84",
    b"\xe2\x84\xaa",
    b"\xc4\xb0",
    b"\xf0\x9f\x98\x80",
    b"\xef\xbb\xbf",
];

impl<'a> Mutator<'a> {
    /// Creates a mutator of these seeds.
    ///
    /// # Panics
    ///
    /// Panics if there are no seeds.
    pub fn new(seeds: &'a [Vec<u8>]) -> Self {
        assert!(!seeds.is_empty(), "there is nothing to mutate");
        let words = seeds
            .iter()
            .flat_map(|seed| seed.chunk_by(|a, b| is_word(*a) == is_word(*b)));
        Self {
            seeds,
            words: words.chain(SPECIAL.iter().copied()).collect(),
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns the next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seeds[self.below(self.seeds.len())].clone();
        for _ in 0..=self.below(4) {
            self.mutate(&mut input);
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        // Half of the mutations keep the text between words, so that many inputs still have a valid
        // form.
        if self.below(2) == 0 {
            return self.swap_word(input);
        }
        let (start, end) = self.range(input.len());
        match self.below(8) {
            0 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            1 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] = self.below(256) as u8;
            }
            2 => drop(input.drain(start..end)),
            3 => {
                let piece = input[start..end].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, piece);
            }
            4 => {
                let other = &self.seeds[self.below(self.seeds.len())];
                let (from, to) = self.range(other.len());
                input.splice(start..end, other[from..to].iter().copied());
            }
            5 => input.truncate(end),
            6 => {
                let word = self.word();
                input.splice(start..end, word.iter().copied());
            }
            _ => {
                let word = self.word();
                input.splice(start..start, word.iter().copied());
            }
        }
    }

    /// Replaces a word.
    fn swap_word(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len() + 1);
        let Some(start) = input[from..].iter().position(|byte| is_word(*byte)) else {
            return;
        };
        let start = from + start;
        let length = input[start..].iter().position(|byte| !is_word(*byte));
        let end = length.map_or(input.len(), |length| start + length);
        let mut other = self.word();
        // Mostly by another word.
        for _ in 0..3 {
            if !other.iter().all(|byte| is_word(*byte)) {
                other = self.word();
            }
        }
        input.splice(start..end, other.iter().copied());
    }

    fn word(&mut self) -> &'a [u8] {
        let at = self.below(self.words.len());
        self.words[at]
    }

    /// Picks a range, mostly a short one.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(8));
        (start, start + self.below(most + 1))
    }

    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*: the high bits of the product are good enough for this.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (high as usize) % bound
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}
