//! Loads against a server that behaves as the test defines.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use axum::Router;
use tokio::sync::RwLock;

use super::*;
use crate::tally::Tally;

/// A server that answers number after number, and stalls all connections once.
fn server(stall_at: u64, stall: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a listener for a runtime");
    let (count, stalled) = (Arc::new(AtomicU64::new(0)), Arc::new(RwLock::new(())));
    let answer = async move || {
        let value = count.fetch_add(1, Ordering::SeqCst) + 1;
        if value == stall_at {
            let _all = stalled.write().await;
            sleep(stall).await;
        }
        drop(stalled.read().await);
        value.to_string()
    };
    thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("threads for the runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, Router::new().fallback(answer)).await
        })
    });
    address
}

/// Asks for the server's next number.
struct Next(Tally);

impl Work for Next {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        request.clear();
        request.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        0
    }

    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let text = std::str::from_utf8(answer.body).map_err(|error| error.to_string())?;
        let value = text.parse().map_err(|_| text.to_owned())?;
        self.0.take(counter, value, value);
        Ok(Some(1))
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.0)
    }
}

fn load(address: SocketAddr, pace: Pace, measured: Duration) -> (Measured, Vec<String>) {
    let work = shared(Next(Tally::new(1)));
    let load = Load { address, connections: 2, pace, warm_up: Duration::ZERO, measured };
    let (measured, ()) = load.run(&work, async {});
    let findings = work.borrow().findings();
    (measured, findings)
}

#[test]
fn a_stall_shows_in_the_percentiles_of_an_open_load() {
    // 200 per second for two seconds, half a second of which the server does not answer: a quarter
    // of all requests is due to start in it, though only two can be sent.
    let server = server(100, Duration::from_millis(500));
    let length = Duration::from_secs(2);
    let (measured, findings) = load(server, Pace::open(200.0, length), length);
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(measured.requests, 400, "every request is sent, however late");
    let p90_ms = measured.latencies.percentile_ms(90.0);
    assert!(p90_ms > 200.0, "p90 hides the stall: {p90_ms} ms");
}

#[test]
fn a_closed_load_asks_as_fast_as_it_is_answered() {
    let server = server(u64::MAX, Duration::ZERO);
    let (measured, findings) = load(server, Pace::Closed, Duration::from_millis(300));
    assert_eq!(findings, Vec::<String>::new());
    assert!(measured.requests > 20, "{} requests", measured.requests);
    assert_eq!(measured.requests, measured.numbers);
    assert_eq!(measured.failures.told("failures"), None);
}
