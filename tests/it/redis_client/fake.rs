//! A server that speaks enough of the Redis protocol to be connected to, and misbehaves on order.
//!
//! It counts the scripts that it has executed: what a client cannot know after a lost connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the server does with the next script call.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Executes it and loses the connection before it answers.
    ExecuteAndHangUp,
    /// Executes it and never answers.
    ExecuteAndKeepSilent,
    /// Executes it when the test allows it.
    ExecuteWhenReleased,
    /// Answers an error without executing it.
    Refuse(&'static str),
    /// Executes it and answers as if another call had been made.
    AnswerAnother,
}

/// A running fake; ends with the test's runtime.
pub(super) struct Fake {
    port: u16,
    state: Arc<State>,
}

struct State {
    script: Mutex<VecDeque<Act>>,
    calls: Mutex<Vec<String>>,
    executed: watch::Sender<usize>,
    connections: watch::Sender<usize>,
    released: watch::Sender<bool>,
    deafened: watch::Sender<()>,
    /// Port and configuration epoch of the master that it names as a sentinel.
    master: Mutex<(u16, u64)>,
}

impl Fake {
    /// Starts a server that does `acts` in order and behaves well afterwards.
    pub(super) async fn start(acts: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            script: Mutex::new(acts.iter().cloned().collect()),
            calls: Mutex::default(),
            executed: watch::Sender::new(0),
            connections: watch::Sender::new(0),
            released: watch::Sender::new(false),
            deafened: watch::Sender::new(()),
            master: Mutex::default(),
        });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.send_modify(|count| *count += 1);
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Fake { port, state }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// As a sentinel, names this server as the master from now on.
    pub(super) fn name_master(&self, port: u16, config_epoch: u64) {
        *self.state.master.lock().unwrap() = (port, config_epoch);
    }

    /// The port that it listens on.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// How many scripts ran.
    pub(super) fn executed(&self) -> usize {
        *self.state.executed.borrow()
    }

    /// Waits until this many scripts ran.
    pub(super) async fn until_executed(&self, count: usize) {
        self.state.executed.subscribe().wait_for(|executed| *executed >= count).await.unwrap();
    }

    /// Waits until this many connections were made since the start.
    pub(super) async fn until_connected(&self, count: usize) {
        let mut connections = self.state.connections.subscribe();
        connections.wait_for(|connections| *connections >= count).await.unwrap();
    }

    /// Lets the call that waits be executed and answered.
    pub(super) fn release(&self) {
        self.state.released.send_replace(true);
    }

    /// Reads nothing more from present connections, without closing them; later ones are served.
    pub(super) fn deafen(&self) {
        self.state.deafened.send_replace(());
    }

    /// The names of the script commands that came, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.state.calls.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    let mut deafened = state.deafened.subscribe();
    loop {
        let command = tokio::select! {
            command = read_command(&mut stream) => command,
            _ = deafened.changed() => std::future::pending().await,
        };
        let Some(command) = command else { return };
        let name = command[0].to_uppercase();
        let reply = match name.as_str() {
            "EVALSHA" | "EVAL" => {
                state.calls.lock().unwrap().push(name);
                match run(&command, &state).await {
                    Some(reply) => reply,
                    None => return,
                }
            }
            "INFO" => bulk("redis_version:7.0.15\r\n"),
            "CLIENT" => ":1\r\n".to_owned(),
            // It has no password, and reports that as a server does.
            "AUTH" | "HELLO" => "-ERR AUTH called without any password configured\r\n".to_owned(),
            "SENTINEL" => {
                let (port, config_epoch) = *state.master.lock().unwrap();
                let words = ["ip", "127.0.0.1", "port", &port.to_string(), "config-epoch"];
                let words = words.iter().map(|word| bulk(word)).collect::<String>();
                format!("*6\r\n{words}{}", bulk(&config_epoch.to_string()))
            }
            "PING" => "+PONG\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        if stream.get_mut().write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Does the next action; `None` hangs up.
async fn run(command: &[String], state: &State) -> Option<String> {
    let act = state.script.lock().unwrap().pop_front();
    if let Some(Act::Refuse(text)) = act {
        return Some(format!("-{text}\r\n"));
    }
    if matches!(act, Some(Act::ExecuteWhenReleased)) {
        state.released.subscribe().wait_for(|released| *released).await.ok()?;
    }
    state.executed.send_modify(|count| *count += 1);
    match act {
        Some(Act::ExecuteAndHangUp) => None,
        Some(Act::ExecuteAndKeepSilent) => std::future::pending().await,
        Some(Act::AnswerAnother) => Some(answer("another call")),
        // After the script, the number of keys and the keys.
        _ => Some(answer(&command[3 + command[2].parse::<usize>().unwrap()])),
    }
}

/// What `probe` answers to an echo.
fn answer(echo: &str) -> String {
    let texts = ["server", echo, "master", "feed", "", "", ""].map(bulk);
    format!("*{}\r\n{}", texts.len(), texts.concat())
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

async fn read_command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let count = read_length(stream).await?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let mut word = vec![0; read_length(stream).await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8(word).ok()?);
    }
    Some(words)
}

/// Reads `*3` or `$7` and the line's end.
async fn read_length(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim_end().parse().ok()
}
