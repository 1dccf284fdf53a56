//! The live page: the released series as they come, on the loopback address only.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::file_failed;
use crate::failure::Failure;

/// Lines kept for someone who opens the page later.
const KEPT: usize = 500;

/// Readers at a time.
const READERS: usize = 16;

#[derive(Default)]
struct Shared {
    lines: VecDeque<String>,
    /// Number of the first line kept.
    first: u64,
    readers: usize,
}

type Board = Arc<(Mutex<Shared>, Condvar)>;

/// The running page. It shows released lines and knows nothing else.
pub struct Page {
    address: SocketAddr,
    board: Board,
}

impl Page {
    /// Serves on a port of the loopback address (0: any free one).
    pub fn start(port: u16, name: &str, series: &[String]) -> Result<Self, Failure> {
        let failed = |e| file_failed("the live page".as_ref(), "cannot listen", e);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let board = Board::default();
        let shared = Arc::clone(&board);
        let html = Arc::new(html(name, series));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (board, html) = (Arc::clone(&shared), Arc::clone(&html));
                thread::spawn(move || {
                    if enter(&board) {
                        // a reader that went away is no failure
                        let _ = serve(stream, &board, &html, address);
                        leave(&board);
                    }
                });
            }
        });
        Ok(Self { address, board })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a released line.
    pub fn push(&self, line: &str) {
        let mut shared = self.board.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.lines.push_back(line.to_owned());
        if shared.lines.len() > KEPT {
            shared.lines.pop_front();
            shared.first += 1;
        }
        self.board.1.notify_all();
    }
}

fn enter(board: &Board) -> bool {
    let mut shared = board.0.lock().unwrap_or_else(PoisonError::into_inner);
    let free = shared.readers < READERS;
    shared.readers += usize::from(free);
    free
}

fn leave(board: &Board) {
    let mut shared = board.0.lock().unwrap_or_else(PoisonError::into_inner);
    shared.readers -= 1;
}

fn serve(
    mut stream: TcpStream,
    board: &Board,
    html: &str,
    address: SocketAddr,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    std::io::Read::take(&mut reader, 4096).read_line(&mut request)?;
    let mut host = String::new();
    for _ in 0..100 {
        let mut header = String::new();
        let read = std::io::Read::take(&mut reader, 8192).read_line(&mut header)?;
        if read == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((key, value)) = header.split_once(':')
            && key.eq_ignore_ascii_case("host")
        {
            value.trim().clone_into(&mut host);
        }
    }
    // a page elsewhere must not read this one through a name that points here
    let mine = [address.to_string(), format!("localhost:{}", address.port())];
    let mut words = request.split(' ');
    match (words.next(), words.next()) {
        _ if !mine.contains(&host) => answer(&mut stream, "403 Forbidden", "text/plain", "no"),
        (Some("GET"), Some("/")) => answer(&mut stream, "200 OK", "text/html; charset=utf-8", html),
        (Some("GET"), Some("/events")) => events(&mut stream, board),
        _ => answer(&mut stream, "404 Not Found", "text/plain", "not here"),
    }
}

fn answer(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Server-sent events: what is kept, then every line as it is released.
fn events(stream: &mut TcpStream, board: &Board) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )?;
    let mut seen = 0_u64;
    loop {
        let fresh: Vec<String> = {
            let shared = board.0.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = |s: &mut Shared| s.first + s.lines.len() as u64 <= seen;
            let (shared, _) = board
                .1
                .wait_timeout_while(shared, Duration::from_secs(10), waiting)
                .unwrap_or_else(PoisonError::into_inner);
            let skip = usize::try_from(seen.saturating_sub(shared.first)).unwrap_or(usize::MAX);
            seen = shared.first + shared.lines.len() as u64;
            shared.lines.iter().skip(skip).cloned().collect()
        };
        if fresh.is_empty() {
            // keeps the connection known to be alive
            stream.write_all(b": still here\n\n")?;
        }
        for line in fresh {
            write!(stream, "data: {line}\n\n")?;
        }
        stream.flush()?;
    }
}

fn html(name: &str, series: &[String]) -> String {
    let facts = json!({"name": name, "series": series.iter().take(24).collect::<Vec<_>>()})
        .to_string()
        .replace('<', "\\u003c");
    format!(
        r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>Private counts</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}}
h1{{font-size:1.4rem}}svg{{width:100%;height:90px;background:#f6f8fa;border-radius:4px}}.n{{fill:none;stroke:#c9d3de}}
.e{{fill:none;stroke:#15607a;stroke-width:2}}section{{margin:1rem 0}}#alarms{{color:#a33}}small{{color:#5b6875}}</style>
<h1 id="name"></h1><p><small>Released values only. Grey: count with noise. Blue: estimate. For comparison: how far zeros, and counts with noise, are off on average.</small></p>
<p id="alarms"></p><div id="plots"></div>
<script>
const facts={facts},keep=500,rows=[];
document.getElementById("name").textContent=facts.name;
const plots=facts.series.map(s=>{{const box=document.createElement("section");
const title=document.createElement("b");title.textContent=s;const last=document.createElement("small");
const ns="http://www.w3.org/2000/svg",svg=document.createElementNS(ns,"svg");
svg.setAttribute("viewBox","0 0 1000 90");svg.setAttribute("preserveAspectRatio","none");
const paths=["n","e"].map(c=>{{const p=document.createElementNS(ns,"polyline");p.setAttribute("class",c);svg.append(p);return p}});
box.append(title," ",last,svg);document.getElementById("plots").append(box);return {{last,paths}}}});
function draw(){{const top=plots.map((_,v)=>Math.max(1,...rows.map(r=>r.estimate[v]||0)))
;plots.forEach((p,v)=>{{const at=f=>rows.map((r,i)=>{{const y=f(r,v);
return y==null?"":(i*1000/keep).toFixed(1)+","+(85-80*Math.min(1.05,Math.max(0,y/top[v]))).toFixed(1)}}).join(" ");
p.paths[0].setAttribute("points",at((r,v)=>r.noisy[v]));p.paths[1].setAttribute("points",at((r,v)=>r.estimate[v]));
const r=rows[rows.length-1];const b=r&&r.baselines,noise=b&&b.laplace[v];
p.last.textContent=r?"tick "+r.tick+": "+r.estimate[v]+(b?" (zeros "+b.zero[v]+(noise==null?"":", noise "+noise)+")":""):""}})}}
let due=false;new EventSource("/events").onmessage=m=>{{const r=JSON.parse(m.data);if(r.withheld)return;rows.push(r);
if(rows.length>keep)rows.shift();
document.getElementById("alarms").textContent=(r.alarms||[]).map(a=>a[0]+": "+a[1]).join(", ");
if(!due){{due=true;requestAnimationFrame(()=>{{due=false;draw()}})}}}};
</script></html>"#
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn ask(address: SocketAddr, path: &str, host: &str, enough: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let (mut text, mut chunk) = (String::new(), [0; 4096]);
        while !text.contains(enough) {
            let read = stream.read(&mut chunk).unwrap();
            if read == 0 {
                break;
            }
            text.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        text
    }

    #[test]
    fn the_page_shows_released_lines_to_this_machine() {
        let page = Page::start(0, "a<b", &["x".to_owned()]).unwrap();
        assert!(page.address().ip().is_loopback());
        page.push(r#"{"tick":0}"#);
        let host = page.address().to_string();
        let top = ask(page.address(), "/", &host, "</html>");
        assert!(top.contains("a\\u003cb") && top.contains("default-src 'none'"));
        let lines = ask(page.address(), "/events", &host, "}\n\n");
        assert!(lines.contains("data: {\"tick\":0}\n\n"));
        let foreign = ask(page.address(), "/events", "evil.example", "\n\n");
        assert!(foreign.starts_with("HTTP/1.1 403"));
    }
}
