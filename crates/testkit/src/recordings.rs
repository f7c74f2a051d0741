//! A fake server of recordings, like Twilio's. It records every request.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::fake::{self, Asked, Host, Script, Serve, lock};

/// The way in which the fake answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    /// With a second of a tone.
    Well,
    /// With this type and these bytes.
    Gives(&'static str, &'static [u8]),
    /// With this status and body.
    Status(u16, &'static str),
    /// With a redirect of this status to this address.
    SendsOn(u16, String),
    /// With more bytes than a client should read.
    Endless,
    /// Announces this length and sends nothing.
    Claims(u64),
    /// One byte, then nothing for this long.
    Stalls(Duration),
    /// One byte after each pause, for ever.
    Trickles(Duration),
    /// Nothing at all for this long.
    Silent(Duration),
    /// Half of the announced length.
    Half,
    HangsUp,
}

/// One received request.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Such as `GET /a`.
    pub line: String,
    pub authorization: Option<String>,
    pub host: Option<String>,
    pub accept_encoding: Option<String>,
}

/// Listens on an address of its own, so that a test can allow it and no other address of this machine.
pub struct FakeRecordings {
    pub ip: Ipv4Addr,
    pub port: u16,
    host: Host,
    state: Arc<State>,
}

struct State {
    visits: Mutex<Vec<Visit>>,
    script: Script<Manner>,
    /// The header that requests must have.
    wants: Mutex<Option<String>>,
}

impl FakeRecordings {
    /// Listens at 127.77.0.`last`.
    pub async fn start(last: u8) -> Self {
        let ip = Ipv4Addr::new(127, 77, 0, last);
        let state =
            Arc::new(State { visits: Mutex::default(), script: Script::new(Manner::Well), wants: Mutex::default() });
        let host = Host::start(ip, state.clone()).await;
        Self { ip, port: host.address.port(), host, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}:{}{path}", self.ip, self.port)
    }

    /// The value for `OUTBOUND_ALLOW`.
    pub fn network(&self) -> String {
        format!("{}/32", self.ip)
    }

    /// Sets how it answers from now on.
    pub fn answer(&self, manner: Manner) {
        self.state.script.set(manner);
    }

    /// Sets how it answers the next requests, one each; then it answers as before.
    pub fn answer_next(&self, manners: &[Manner]) {
        self.state.script.set_next(manners);
    }

    /// From now on answers 401 to requests without this header.
    pub fn want(&self, authorization: &str) {
        *lock(&self.state.wants) = Some(authorization.to_owned());
    }

    pub async fn go_away(&self) {
        self.host.go_away().await;
    }

    pub fn visits(&self) -> Vec<Visit> {
        lock(&self.state.visits).clone()
    }
}

impl Serve for State {
    async fn serve(&self, asked: Asked, mut client: TcpStream) -> Option<()> {
        let authorization = asked.header("authorization");
        lock(&self.visits).push(Visit {
            line: asked.line().to_owned(),
            authorization: authorization.clone(),
            host: asked.header("host"),
            accept_encoding: asked.header("accept-encoding"),
        });
        let is_known = lock(&self.wants).as_ref().is_none_or(|wanted| authorization.as_ref() == Some(wanted));
        if !is_known {
            return fake::answer(&mut client, 401, "www-authenticate: Basic\r\n", b"<no/>").await;
        }
        let said = |bytes: u64| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n"
            )
        };
        match self.script.take() {
            Manner::Well => fake::answer(&mut client, 200, "content-type: audio/x-wav\r\n", &wav(1)).await,
            Manner::Gives(kind, body) => {
                fake::answer(&mut client, 200, &format!("content-type: {kind}\r\n"), body).await
            }
            Manner::Status(status, body) => fake::answer(&mut client, status, "", body.as_bytes()).await,
            Manner::SendsOn(status, location) => {
                fake::answer(&mut client, status, &format!("location: {location}\r\n"), b"").await
            }
            Manner::Endless => fake::pour(&mut client, "audio/wav").await,
            Manner::Claims(bytes) => client.write_all(said(bytes).as_bytes()).await.ok(),
            Manner::Stalls(pause) => {
                client.write_all((said(1_000) + "R").as_bytes()).await.ok()?;
                tokio::time::sleep(pause).await;
                None
            }
            Manner::Trickles(pause) => {
                client.write_all(said(9_000).as_bytes()).await.ok()?;
                loop {
                    client.write_all(b"R").await.ok()?;
                    tokio::time::sleep(pause).await;
                }
            }
            Manner::Silent(pause) => {
                tokio::time::sleep(pause).await;
                None
            }
            Manner::Half => client.write_all((said(1_000) + "RIFF").as_bytes()).await.ok(),
            Manner::HangsUp => None,
        }
    }
}

/// A tone of this many seconds at telephone quality: 8,000 samples a second, 16 bits each.
pub fn wav(seconds: u32) -> Vec<u8> {
    const RATE: u32 = 8_000;
    let (samples, mut out) = (RATE * seconds, Vec::new());
    out.extend(b"RIFF");
    out.extend((36 + 2 * samples).to_le_bytes());
    out.extend(b"WAVEfmt ");
    out.extend(16_u32.to_le_bytes());
    for word in [1_u16, 1] {
        out.extend(word.to_le_bytes()); // PCM, one channel
    }
    out.extend(RATE.to_le_bytes());
    out.extend((2 * RATE).to_le_bytes());
    for word in [2_u16, 16] {
        out.extend(word.to_le_bytes());
    }
    out.extend(b"data");
    out.extend((2 * samples).to_le_bytes());
    let tone = |n: u32| (f64::from(n) * 440.0 * std::f64::consts::TAU / f64::from(RATE)).sin() * 8_000.0;
    out.extend((0..samples).flat_map(|n| (tone(n) as i16).to_le_bytes()));
    out
}
