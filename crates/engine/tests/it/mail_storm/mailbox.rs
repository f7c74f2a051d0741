//! A mailbox in the hands of its owner, whatever its provider.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::letters::Written;

/// The days over which letters came in before the storm.
const DAYS: i64 = 6;

/// The way in which the provider tells of the changes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    Plainly,
    NotAtAll,
    Twice,
    /// Nothing until later, and then the other way round.
    Late,
}

impl Telling {
    pub fn of(dice: &mut StdRng) -> Self {
        match dice.random_range(0..10) {
            0..3 => Self::NotAtAll,
            3..5 => Self::Twice,
            5..7 => Self::Late,
            _ => Self::Plainly,
        }
    }
}

pub trait Mailbox: Send {
    /// So many letters that are there before anybody reads them, in thirty folders.
    fn fill(&mut self, dice: &mut StdRng, n: usize);
    /// Something that happens in the mailbox.
    fn act(&mut self, dice: &mut StdRng, tally: &mut Tally);
    /// Something that goes wrong at the provider.
    fn trouble(&mut self, dice: &mut StdRng, tally: &mut Tally);
    /// The provider forgets every place that it gave to its clients.
    fn expire(&mut self);
    /// The provider ends the subscription.
    fn unsubscribe(&mut self);
    /// Sets how the provider tells of changes from now on.
    fn tell(&mut self, telling: Telling);
    /// Tells what was kept back.
    fn release(&mut self);
    /// Nothing goes wrong any more.
    fn calm(&mut self);
    /// A letter comes in.
    fn receive(&mut self, dice: &mut StdRng);
    /// The letters that were written.
    fn n_letters(&self) -> usize;
    /// Every letter in a place that is read, by its id.
    fn truth(&self) -> BTreeMap<String, Kept>;
}

/// A letter as memory should have it.
#[derive(Clone, Debug)]
pub struct Kept {
    pub place: &'static str,
    /// The names of its folders. Of a folder that was renamed without any word to clients, each name that it had.
    pub folders: Vec<Vec<String>>,
    /// The names of the files that are kept.
    pub files: Vec<&'static str>,
    pub left_out: Option<&'static str>,
    pub received_at: DateTime<Utc>,
}

/// The letters of a mailbox that exist somewhere in it, and how each was written.
#[derive(Default)]
pub struct Letters {
    alive: Vec<String>,
    written: HashMap<String, Written>,
    n_written: usize,
}

impl Letters {
    /// Writes the next letter.
    pub fn write(&mut self, dice: &mut StdRng) -> Written {
        self.n_written += 1;
        Written::new(dice, self.n_written)
    }

    pub fn add(&mut self, id: String, written: Option<Written>) {
        self.written.extend(written.map(|written| (id.clone(), written)));
        self.alive.push(id);
    }

    /// Any of them.
    pub fn any(&self, dice: &mut StdRng) -> String {
        self.alive[dice.random_range(0..self.alive.len())].clone()
    }

    /// The latest one, or any.
    pub fn recent(&self, dice: &mut StdRng) -> String {
        let from = self.alive.len().saturating_sub(40);
        self.alive[dice.random_range(from..self.alive.len())].clone()
    }

    /// Takes any of them out of the list, unless there are few.
    pub fn take(&mut self, dice: &mut StdRng) -> Option<String> {
        let at = dice.random_range(0..self.alive.len());
        (self.alive.len() > 20).then(|| self.alive.swap_remove(at))
    }

    pub fn set(&mut self, alive: Vec<String>) {
        self.alive = alive;
    }

    pub fn of(&self, id: &str) -> Option<&Written> {
        self.written.get(id)
    }

    pub fn files(&self, id: &str) -> Vec<&'static str> {
        let files = self.of(id).into_iter().flat_map(|written| &written.files);
        files.filter(|file| file.is_kept).map(|file| file.name).collect()
    }

    pub fn left_out(&self, id: &str) -> Option<&'static str> {
        self.of(id).and_then(|written| written.left_out)
    }

    pub fn count(&self) -> usize {
        self.n_written
    }
}

/// The time at which the letter of this number came in, of so many before `now`.
pub fn came_in(now: DateTime<Utc>, number: usize, of: usize) -> DateTime<Utc> {
    let share = (of - number) as f64 / of as f64;
    now - TimeDelta::minutes(30) - TimeDelta::seconds((DAYS as f64 * 86_400.0 * share) as i64)
}

/// The numbers of a storm.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: usize,
    pub letters: usize,
    pub acts: usize,
    pub moves: usize,
    pub deletions: usize,
    pub folders: usize,
    pub troubles: usize,
    pub expiries: usize,
    /// Acts that nobody was told of, that were told twice, and that were told late.
    pub untold: usize,
    pub told_twice: usize,
    pub told_late: usize,
    pub reconnected: usize,
}

impl Tally {
    pub fn told(&mut self, telling: Telling) {
        self.acts += 1;
        match telling {
            Telling::Plainly => {}
            Telling::NotAtAll => self.untold += 1,
            Telling::Twice => self.told_twice += 1,
            Telling::Late => self.told_late += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, letters, acts, moves, deletions, folders, troubles, expiries, .. } = self;
        let Self { untold, told_twice, told_late, reconnected, .. } = self;
        write!(
            f,
            "{kills} kills, {letters} letters, {acts} acts ({moves} moves, {deletions} deletions, {folders} changes of folders; {untold} told to \
             nobody, {told_twice} twice, {told_late} late), {troubles} troubles, {expiries} lost places, {reconnected} reconnected"
        )
    }
}
