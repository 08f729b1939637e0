//! Streams to compare.

/// Request lines and other lines of heads.
const REQUEST_LINES: [&str; 14] = [
    "GET / HTTP/1.1",
    "GET /a/b?c=d&e=%20 HTTP/1.1",
    "POST /p HTTP/1.1",
    "PUT /[a]|^~?{b}`\\ HTTP/1.1",
    "HEAD /h HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "DELETE http://o.example:81/a?b HTTP/1.1",
    "GET http://[::1]/ HTTP/1.1",
    "PATCH /a.b HTTP/1.0",
    "GET /a#b HTTP/1.1",
    "GET  / HTTP/1.1",
    "GET / HTTP/1.1 ",
    "GET /a\tb HTTP/1.1",
    "GET / HTTP/2.0",
];

const STATUS_LINES: [&str; 12] = [
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.1 404 Not  Found ",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 103 Early Hints",
    "HTTP/1.1 500 \u{e9}",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1  200 OK",
    "HTTP/3.0 200 OK",
];

const FIELDS: [&str; 42] = [
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: 5",
    "content-length:  05 ",
    "Content-Length: 5, 5",
    "Content-Length: +5",
    "Content-Length: 5a",
    "Content-Length:",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "transfer-encoding:CHUNKED\t",
    "Transfer-Encoding:   chunked  ",
    "Transfer-Encoding: chunked;a=b",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: xchunked",
    "Transfer_Encoding: chunked",
    "Connection: close",
    "Connection: keep-alive",
    "Connection: keep-alive, X-Hop",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "TE: trailers",
    "Trailer: X-T",
    "X-Hop: 1",
    "X: ",
    "X:",
    "X:  \t a b \t",
    "X : a",
    "X: a\r b",
    "X: a\n b",
    "X: a\r\n b",
    " X: a",
    "X: \u{1}",
    "X: \0",
    "X: \u{7f}",
    "X: \u{e9}\u{ff}",
    "!#$%&'*+-.^`|~09: token",
    "X(: a",
    ": a",
    "garbage",
];

const HOSTS: [&str; 8] = [
    "Host: t.example",
    "Host: t.example",
    "Host: t.example",
    "host:t.example:8080 ",
    "HOST: [::1]:80",
    "Host: t.example\r\nHost: t.example",
    "Host: a b",
    "X: y",
];

const BODIES: [&str; 24] = [
    "",
    "hello",
    "hello",
    "hell",
    "hello!",
    "0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "A\r\nhellohello\r\na\r\nhellohello\r\n000\r\n\r\n",
    "5;a=b;c=\"d\\\"; e\"\r\nhello\r\n0;f\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-T: 1\r\nx-u:2 \r\n\r\n",
    "5\r\nhello\r\n0\r\nX-T: 1\n\r\n",
    "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "5;\r\nhello\r\n0\r\n\r\n",
    "5; a\r\nhello\r\n0\r\n\r\n",
    "5;a\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhelloXX\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "0\r\n\n",
];

/// Random choices that are the same in every run.
struct Choice(fastrand::Rng);

impl Choice {
    fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.0.usize(..texts.len())]
    }

    fn message(&mut self, lines: &[&str], first: &[&str]) -> String {
        // Mostly a valid line.
        let right = lines.len() * 2 / 3;
        let few = if self.0.u8(..4) > 0 {
            right
        } else {
            lines.len()
        };
        let mut message = format!("{}\r\n", self.of(&lines[..few]));
        if !first.is_empty() {
            message += &format!("{}\r\n", self.of(first));
        }
        for _ in 0..self.0.usize(..4) {
            message += &format!("{}\r\n", self.of(&FIELDS));
        }
        message += "\r\n";
        message += self.of(&BODIES);
        message
    }

    fn stream(&mut self, lines: &[&str], first: &[&str]) -> Vec<u8> {
        let mut stream = String::new();
        for _ in 0..=self.0.usize(..3) {
            stream += &self.message(lines, first);
        }
        // One character is one byte.
        let mut bytes: Vec<u8> = stream.chars().map(|c| u8::try_from(c).unwrap()).collect();
        if self.0.u8(..8) == 0 {
            let at = self.0.usize(..bytes.len());
            bytes[at] = self.0.u8(..);
        }
        bytes
    }
}

fn streams(number: usize, lines: &[&str], first: &[&str]) -> Vec<Vec<u8>> {
    let mut choice = Choice(fastrand::Rng::with_seed(7));
    (0..number).map(|_| choice.stream(lines, first)).collect()
}

/// Each request line, field and body alone, and streams of several.
pub(crate) fn requests(number: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut push =
        |text: String| all.push(text.chars().map(|c| u8::try_from(c).unwrap()).collect());
    for line in REQUEST_LINES {
        push(format!("{line}\r\nHost: t.example\r\n\r\n"));
    }
    for field in FIELDS {
        push(format!(
            "POST / HTTP/1.1\r\nHost: t.example\r\n{field}\r\n\r\nhello"
        ));
    }
    for body in BODIES {
        push(format!(
            "POST / HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        ));
    }
    all.extend(streams(number, &REQUEST_LINES, &HOSTS));
    all
}

/// Like [`requests`], for responses.
pub(crate) fn responses(number: usize) -> Vec<Vec<u8>> {
    streams(number, &STATUS_LINES, &[])
}
