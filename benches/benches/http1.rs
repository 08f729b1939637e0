//! HTTP/1.1 messages: reading and writing heads, tracking chunks. Compared with `httparse`, which
//! only reads heads.

use std::hint::black_box;
use std::mem::MaybeUninit;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use proxy_model::RequestHead;
use proxy_runtime::http1::{
    ChunkTracker, FieldName, FieldOperation, FieldValue, Framing, HeadLimits, HeadTable,
    RawRequest, RawResponse, RequestInfo, RequestRewrite, RequestView, ResponseRewrite, Status,
    parse_request, parse_response, write_request, write_response,
};

/// The request of a program.
const PROGRAM: &str = "GET /shop/orders/4711?page=2 HTTP/1.1\r\n\
    Host: orders.example.com\r\n\
    User-Agent: orders-client/2.1\r\n\
    Accept: application/json\r\n\
    Accept-Encoding: gzip\r\n\
    X-Request-Id: 4bf92f3577b34da6\r\n\r\n";

/// The request of a browser.
const BROWSER: &str = "GET /shop/orders/4711?page=2 HTTP/1.1\r\n\
    Host: orders.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.7\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Cache-Control: no-cache\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=9f8b2c7d6e5f4a3b; theme=dark; consent=all; visit=1.2.123456789.987654321\r\n\
    Pragma: no-cache\r\n\
    Referer: https://www.example.com/basket\r\n\
    Sec-Fetch-Dest: empty\r\n\
    Sec-Fetch-Mode: cors\r\n\
    Sec-Fetch-Site: same-site\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    X-Requested-With: XMLHttpRequest\r\n\r\n";

const REPLY: &str = "HTTP/1.1 200 OK\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 128\r\n\
    Date: Fri, 20 Nov 2026 20:00:00 GMT\r\n\
    Server: origin/1.0\r\n\r\n";

/// More fields than any of these heads.
const FIELDS: usize = 64;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (name, head) in [("program", PROGRAM), ("browser", BROWSER)] {
        let mut group = criterion.benchmark_group(format!("http1/request-{name}"));
        requests(&mut group, head.as_bytes());
        group.finish();
    }
    let mut group = criterion.benchmark_group("http1/response");
    responses(&mut group, REPLY.as_bytes());
    group.finish();
    let mut group = criterion.benchmark_group("http1/chunks");
    for (name, chunks, size) in [("16x1024", 16, 1024), ("1024x16", 1024, 16)] {
        follow_chunks(&mut group, name, chunks, size);
    }
    group.finish();
    criterion.final_summary();
}

fn read_request(bytes: &[u8], table: &mut HeadTable) -> RawRequest {
    match parse_request(bytes, &HeadLimits::default(), table) {
        Ok(Status::Complete(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn read_response(bytes: &[u8], table: &mut HeadTable) -> RawResponse {
    match parse_response(bytes, RequestInfo::default(), &HeadLimits::default(), table) {
        Ok(Status::Complete(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn requests(group: &mut BenchmarkGroup<'_, WallTime>, bytes: &[u8]) {
    let mut table = HeadTable::new();
    let request = read_request(bytes, &mut table);
    assert_eq!(request.framing(), Framing::None);
    assert_eq!(request.head_length(), bytes.len());
    group.bench_function("parse", |bencher| {
        bencher.iter(|| black_box(read_request(black_box(bytes), &mut table)));
    });
    group.bench_function("httparse", |bencher| {
        bencher.iter(|| {
            let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
            let mut request = httparse::Request::new(&mut []);
            let read = httparse::ParserConfig::default().parse_request_with_uninit_headers(
                &mut request,
                black_box(bytes),
                &mut fields,
            );
            black_box((read.is_ok(), request.headers.len()))
        });
    });
    group.bench_function("view", |bencher| {
        bencher.iter(|| {
            let view = RequestView::new(black_box(bytes), &request, &table, false);
            black_box((view.path().len(), view.authority().len()))
        });
    });

    let names = ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]
        .map(|name| FieldName::new(name).expect("it is a name"));
    let value = |value| FieldValue::new(value).expect("it is a value");
    let operations = [
        FieldOperation::Set(&names[0], value(b"203.0.113.7")),
        FieldOperation::Set(&names[1], request.authority_value(bytes)),
        FieldOperation::Set(&names[2], FieldValue::from_static("http")),
    ];
    let mut rewrite = RequestRewrite::default();
    rewrite.host = Some(value(b"10.0.0.1:8080"));
    let mut out = Vec::with_capacity(4096);
    let plain = rewrite;
    rewrite.operations = &operations;
    for (name, rewrite) in [("write", plain), ("write-forwarded", rewrite)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                write_request(black_box(bytes), &request, &table, &rewrite, &mut out);
                black_box(out.len())
            });
        });
        let written = read_request(&out, &mut HeadTable::new());
        assert_eq!(written.authority().get(&out), b"10.0.0.1:8080");
    }
    assert!(String::from_utf8_lossy(&out).contains("X-Forwarded-Host: orders.example.com\r\n"));
}

fn responses(group: &mut BenchmarkGroup<'_, WallTime>, bytes: &[u8]) {
    let mut table = HeadTable::new();
    let response = read_response(bytes, &mut table);
    assert_eq!(response.framing(), Framing::Length(128));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| black_box(read_response(black_box(bytes), &mut table)));
    });
    group.bench_function("httparse", |bencher| {
        bencher.iter(|| {
            let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
            let mut response = httparse::Response::new(&mut []);
            let read = httparse::ParserConfig::default().parse_response_with_uninit_headers(
                &mut response,
                black_box(bytes),
                &mut fields,
            );
            black_box((read.is_ok(), response.headers.len()))
        });
    });
    let mut out = Vec::with_capacity(4096);
    let rewrite = ResponseRewrite::new(&response);
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            out.clear();
            write_response(black_box(bytes), &response, &table, &rewrite, &mut out);
            black_box(out.len())
        });
    });
    assert_eq!(out, bytes);
}

fn follow_chunks(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, chunks: usize, size: usize) {
    let chunk = format!("{size:x}\r\n{}\r\n", "x".repeat(size));
    let bytes = (chunk.repeat(chunks) + "0\r\n\r\n").into_bytes();
    let mut table = HeadTable::new();
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let mut follow = || {
        let mut tracker = ChunkTracker::new();
        let progress = tracker.track(black_box(&bytes), &HeadLimits::default(), &mut table);
        progress.expect("these are chunks")
    };
    let progress = follow();
    assert!(progress.ended);
    assert_eq!(progress.payload, (chunks * size) as u64);
    group.bench_function(name, |bencher| bencher.iter(&mut follow));
}
