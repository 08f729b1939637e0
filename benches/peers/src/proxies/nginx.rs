//! nginx: one worker process and its master.

use std::fmt::Write as _;

use super::Setup;

/// Renders the configuration. For large bodies it raises the buffers and streams requests, as its
/// documentation advises; by default nginx spools to files.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let Setup {
        ports,
        workers,
        open_files,
        ..
    } = setup;
    let directory = setup.directory.display();
    let servers = setup
        .origins
        .iter()
        .fold(String::new(), |mut text, origin| {
            let _ = writeln!(text, "        server {origin};");
            text
        });
    let large = if setup.large_bodies {
        "\
        proxy_request_buffering off;
        proxy_buffer_size 128k;
        proxy_buffers 8 128k;
        proxy_busy_buffers_size 256k;
        proxy_max_temp_file_size 0;
"
    } else {
        ""
    };
    format!(
        "\
daemon off;
worker_processes {workers};
worker_rlimit_nofile {open_files};
pid {directory}/nginx.pid;
error_log {directory}/nginx.error.log error;
events {{
    worker_connections {open_files};
}}
http {{
    access_log off;
    client_body_temp_path {directory}/client_body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    client_max_body_size 0;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    upstream origins {{
        zone origins 256k;
        random two least_conn;
{servers}\
        keepalive 256;
        keepalive_timeout 300s;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{http} reuseport;
        listen 127.0.0.1:{h2c} http2 reuseport;
        listen 127.0.0.1:{tls} ssl reuseport;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
{large}\
        location / {{
            proxy_pass http://origins;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
        }}
    }}
}}
",
        http = ports.http,
        h2c = ports.h2c,
        tls = ports.tls,
        chain = setup.certificate.chain.display(),
        key = setup.certificate.key.display(),
    )
}
