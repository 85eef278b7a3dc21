//! Connections that move between lanes: answered where their requests belong, whole, and ended as
//! those that never moved.

use super::*;

/// Answers with the lane whose thread does so, and the length of the body: what is below `/slow`
/// belongs to the slow lane.
async fn start_of_lanes(
    tls: Option<TlsAcceptor>,
    change: impl FnOnce(&mut ConnectionBounds),
) -> Running {
    let answer = |request: Request<Incoming>, _| {
        let is_slow = request.uri().path().starts_with("/slow");
        let answer = async {
            let body = axum::body::to_bytes(Body::new(request.into_body()), LARGE).await;
            // It goes on where it began.
            tokio::task::yield_now().await;
            let is_slow = std::thread::current().name() == Some(SLOW);
            let lane = if is_slow { Lane::Slow } else { Lane::Fast };
            let length = body.map_or(0, |body| body.len());
            Response::new(Body::from(format!("[{lane:?} {length}]")))
        };
        (if is_slow { Lane::Slow } else { Lane::Fast }, answer)
    };
    start_answering(tls, answer, change).await
}

/// A request with a body, which may follow.
fn request_of(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n")
}

const LANES: [(&str, &str); 6] = [
    ("/fast", "Fast"),
    ("/slow", "Slow"),
    ("/slow", "Slow"),
    ("/fast", "Fast"),
    ("/fast", "Fast"),
    ("/slow", "Slow"),
];

/// Goal: a connection is served by the runtime of its requests, whatever it was asked before.
/// Method: each answer names the lane whose thread makes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_served_where_its_last_request_belongs() {
    let running = start_of_lanes(None, |_| {}).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    for (path, lane) in LANES {
        let text = converse_raw(&stream, request_of(path, 0).as_bytes(), "]").await;
        assert!(text.ends_with(&format!("[{lane} 0]")), "{path}: {text}");
    }
    // Sent at once, they are answered one after the other, each in its lane.
    let all: String = LANES.map(|(path, _)| request_of(path, 0)).concat();
    let mut text = converse_raw(&stream, all.as_bytes(), "]").await;
    while text.matches(']').count() < LANES.len() {
        text += &converse_raw(&stream, b"", "]").await;
    }
    let answers: Vec<&str> = text.split(['[', ']']).skip(1).step_by(2).collect();
    assert_eq!(answers, LANES.map(|(_, lane)| format!("{lane} 0")));
}

/// Goal: nothing of a body is lost that arrives before, while and after its connection moves.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_arrives_whole_whenever_its_connection_moves() {
    const LENGTH: usize = 300_000;
    let running = start_of_lanes(None, |_| {}).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    for (round, (path, lane)) in LANES.into_iter().cycle().take(30).enumerate() {
        let whole = request_of(path, LENGTH) + &"x".repeat(LENGTH);
        let (now, later) = whole.as_bytes().split_at(round * 20);
        let mut sent = 0;
        while sent < now.len() {
            stream.writable().await.expect("writable");
            sent += stream.try_write(&now[sent..]).unwrap_or_default();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        let text = converse_raw(&stream, later, "]").await;
        assert!(text.ends_with(&format!("[{lane} {LENGTH}]")), "{path} {round}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_under_tls_move_like_others() {
    let pair = Pair::new();
    let tls = Tls::open(&pair.settings()).expect("a pair");
    let running = start_of_lanes(Some(tls.acceptor()), |_| {}).await;
    let mut stream = connect_tls(running.address, &pair.certificate).await.expect("connected");
    for (path, lane) in LANES {
        let sent = request_of(path, 4) + "body";
        stream.write_all(sent.as_bytes()).await.expect("sent");
        let mut text = String::new();
        while !text.ends_with(']') {
            text.push(char::from(stream.read_u8().await.expect("answered")));
        }
        assert!(text.ends_with(&format!("[{lane} 4]")), "{path}: {text}");
    }
}

/// Goal: one that has moved ends as it would have in its first lane, and gives its place back.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_has_moved_ends_when_it_is_idle_and_when_its_client_leaves() {
    let running = start_of_lanes(None, |bounds| {
        bounds.header_read_timeout = Duration::from_millis(300);
        bounds.connections_per_peer_max = 1;
    })
    .await;
    for (round, (path, lane)) in LANES.into_iter().enumerate() {
        let stream = loop {
            // The server may not have seen yet that the last one has ended.
            let stream = TcpStream::connect(running.address).await.expect("connected");
            let text = converse_raw(&stream, request_of(path, 0).as_bytes(), "]").await;
            if text.ends_with(&format!("[{lane} 0]")) {
                break stream;
            }
            assert_eq!(text, "", "refused");
        };
        if round % 2 == 0 {
            // Returns only because the server closes the connection.
            assert_eq!(converse_raw(&stream, b"", "").await, "");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_waits_for_each_connection_once_wherever_it_is() {
    // Permits are kept for answers that do not wait yet.
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let answer = {
        let (entered, leave) = (entered.clone(), leave.clone());
        move |request: Request<Incoming>, _| {
            let is_slow = request.uri().path() == "/slow";
            let (entered, leave) = (entered.clone(), leave.clone());
            let answer = async move {
                entered.notify_one();
                leave.acquire().await.expect("it is never closed").forget();
                Response::new(Body::from("done"))
            };
            (if is_slow { Lane::Slow } else { Lane::Fast }, answer)
        }
    };
    let Running { address, stop, served, slow: _slow } =
        start_answering(None, answer, |_| {}).await;
    let mut asked = Vec::new();
    for (path, _) in LANES {
        let stream = TcpStream::connect(address).await.expect("connected");
        let request = request_of(path, 0);
        asked
            .push(tokio::spawn(async move { converse_raw(&stream, request.as_bytes(), "").await }));
        entered.notified().await;
    }
    stop.send(()).expect("the server runs");
    for _ in &asked {
        assert!(!served.is_finished());
        leave.add_permits(1);
    }
    for one in asked {
        let text = one.await.expect("answered");
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("done"), "{text}");
    }
    tokio::time::timeout(Duration::from_secs(20), served).await.expect("it ends").expect("served");
}

/// Goal: a client that ends its side before it is answered has left, on either lane: its call is
/// dropped, nothing of an answer is sent, and its place is given back. Method: no answer is ever
/// ready, and there is one place.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_its_side_before_its_answer_has_left_on_either_lane() {
    let entered = Arc::new(Notify::new());
    let answer = {
        let entered = entered.clone();
        move |request: Request<Incoming>, _| {
            let is_slow = request.uri().path() == "/slow";
            let entered = entered.clone();
            let answer = async move {
                entered.notify_one();
                std::future::pending::<Response>().await
            };
            (if is_slow { Lane::Slow } else { Lane::Fast }, answer)
        }
    };
    let running = start_answering(None, answer, |bounds| bounds.connections_max = 1).await;
    for (path, _) in LANES {
        let mut stream = TcpStream::connect(running.address).await.expect("connected");
        stream.write_all(request_of(path, 0).as_bytes()).await.expect("sent");
        entered.notified().await;
        stream.shutdown().await.expect("ended");
        let mut text = String::new();
        let rest = stream.read_to_string(&mut text);
        let rest = tokio::time::timeout(Duration::from_secs(20), rest).await;
        rest.expect("the server ends the connection").expect("in order");
        assert_eq!(text, "", "{path}");
    }
}
