//! The processes of a soak. A seeded schedule kills them; what has ended is started again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::Secret;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, RngExt as _};
use rustix::process::Signal;
use testkit::cluster::kill;

use crate::app::{App, Folder, command, free_port};
use crate::crashes::{helpers, postmaster, sessions};
use crate::intake::MASTER_KEY;

/// A process that a schedule can kill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Victim {
    /// `tributary up`, which also keeps the server.
    Up,
    Serve,
    Worker,
    /// A device's agent. What it held is locked for five minutes.
    Agent,
    /// One session of the server's: all others end with it.
    Session,
    /// Another process of the server's.
    Helper,
    Postmaster,
}

impl Victim {
    pub const ALL: [Self; 7] =
        [Self::Up, Self::Serve, Self::Worker, Self::Agent, Self::Session, Self::Helper, Self::Postmaster];
}

/// One process, and how to start it.
struct Player {
    victim: Victim,
    args: &'static [&'static str],
    port: u16,
    env: Vec<(String, String)>,
    app: App,
}

pub struct Cast {
    pub folder: Folder,
    pub kills: BTreeMap<Victim, u32>,
    pub restarts: u32,
    /// Processes that ended by themselves, with their last words, and how often.
    pub gave_up: BTreeMap<(Victim, String), u32>,
    /// Everything that the processes printed, but for those that still run.
    printed: String,
    players: Vec<Player>,
}

impl Cast {
    /// Starts `up` with an embedded server, and waits until it is ready.
    pub async fn start(settings: &[(String, String)]) -> Self {
        let mut cast = Self {
            folder: Folder::new(),
            kills: BTreeMap::new(),
            restarts: 0,
            gave_up: BTreeMap::new(),
            printed: String::new(),
            players: Vec::new(),
        };
        let port = free_port();
        let env = [settings, &[("MASTER_KEY".into(), MASTER_KEY.into())]].concat();
        let app = App::start(cast.command(port, &env), &["up"], port).await;
        cast.players.push(Player { victim: Victim::Up, args: &["up"], port, env, app });
        cast
    }

    /// Adds another server, two workers and a device's agent.
    pub fn complete(&mut self, agent_key: &Secret) {
        let env = self.players[0].env.clone();
        let port = free_port();
        self.add(Victim::Serve, &["serve"], port, env.clone());
        self.add(Victim::Worker, &["worker"], port, env.clone());
        self.add(Victim::Worker, &["worker"], port, env);
        let agent = [("TRIBUTARY_URL", self.urls().remove(1)), ("TRIBUTARY_KEY", agent_key.reveal().to_owned())];
        let agent = agent.map(|(name, value)| (name.to_owned(), value)).to_vec();
        self.add(Victim::Agent, &["agent", "--device", "soak"], port, agent);
    }

    fn add(&mut self, victim: Victim, args: &'static [&'static str], port: u16, env: Vec<(String, String)>) {
        let app = App::spawn(self.command(port, &env), args, port);
        self.players.push(Player { victim, args, port, env, app });
    }

    fn command(&self, port: u16, env: &[(String, String)]) -> std::process::Command {
        let mut command = command(&self.folder.0, port);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The addresses of `up` and of the other server.
    pub fn urls(&self) -> Vec<String> {
        let serves = |player: &&Player| [Victim::Up, Victim::Serve].contains(&player.victim);
        self.players.iter().filter(serves).map(|player| player.app.url.clone()).collect()
    }

    /// Kills one process every few seconds, and starts again what has ended.
    pub async fn play(&mut self, rng: &mut StdRng, length: Duration, victims: &[Victim]) {
        let end = Instant::now() + length;
        let mut next = Instant::now() + pause(rng);
        while Instant::now() < end {
            self.revive().await;
            if Instant::now() >= next {
                next = Instant::now() + pause(rng);
                let victim = *victims.choose(rng).expect("a victim");
                self.kill(victim, rng.next_u32());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Kills the nth process of a kind.
    pub fn kill(&mut self, victim: Victim, nth: u32) {
        let server = postmaster(&self.folder);
        let pids = match victim {
            Victim::Postmaster => server.into_iter().collect(),
            Victim::Session => server.map(sessions).unwrap_or_default(),
            Victim::Helper => server.map(helpers).unwrap_or_default(),
            _ => self.players.iter().filter(|player| player.victim == victim).map(|player| player.app.pid()).collect(),
        };
        if let Some(pid) = pids.get(nth as usize % pids.len().max(1)) {
            kill(*pid, Signal::KILL);
            *self.kills.entry(victim).or_default() += 1;
        }
    }

    pub async fn revive(&mut self) {
        for nth in 0..self.players.len() {
            let Some(status) = self.players[nth].app.ended_within(Duration::ZERO).await else { continue };
            let player = &self.players[nth];
            if status.code().is_some() {
                let printed = player.app.printed();
                let said = printed.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
                *self.gave_up.entry((player.victim, said)).or_default() += 1;
            }
            let again = App::spawn(self.command(player.port, &player.env), player.args, player.port);
            let ended = std::mem::replace(&mut self.players[nth].app, again);
            self.printed.push_str(&ended.printed());
            self.restarts += 1;
        }
    }

    /// Everything that was printed and logged, the server's log included.
    pub fn printed(&self) -> String {
        let logged = std::fs::read_to_string(self.folder.0.join("run/postgres.log")).unwrap_or_default();
        let running: String = self.players.iter().map(|player| player.app.printed()).collect();
        [self.printed.as_str(), &running, &logged].concat()
    }
}

fn pause(rng: &mut StdRng) -> Duration {
    Duration::from_millis(rng.random_range(500..4_000))
}
