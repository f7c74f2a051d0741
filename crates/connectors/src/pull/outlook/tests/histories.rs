//! Mailboxes in which people do anything in any order, between rounds and during them. Memory ends as the mailbox. The seed is printed.

use std::time::Duration;

use fakes::Outlook;

use super::*;

/// People at work in the mailbox, by a seed.
struct People {
    state: u64,
    n_acts: usize,
    /// Folders with all that is in them go for good.
    empties_bins: bool,
    /// Graph forgets every place that it gave.
    loses_places: bool,
}

impl People {
    fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            n_acts: 0,
            empties_bins: false,
            loses_places: false,
        }
    }

    fn dice(&mut self, sides: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % sides as u64).unwrap_or_default()
    }

    fn act(&mut self, outlook: &Outlook) {
        self.n_acts += 1;
        let (ids, folders, n) = (outlook.ids(), outlook.folders(), self.n_acts);
        let own: Vec<&String> = folders
            .iter()
            .filter(|(_, name)| name.starts_with("Project") || name.starts_with("New"))
            .map(|(id, _)| id)
            .collect();
        let Some(id) = (!ids.is_empty()).then(|| &ids[self.dice(ids.len())]) else {
            return drop(outlook.receive("a@example.com", "The first", "x"));
        };
        match self.dice(12) {
            0..=2 => drop(outlook.receive("a@example.com", &format!("Letter {n}"), "x")),
            3 | 4 => outlook.move_to(id, &folders[self.dice(folders.len())].0),
            5 => outlook.delete(id),
            6 => outlook.purge(id),
            7 => outlook.edit(id, json!({ "subject": format!("Edit {n}") })),
            8 => outlook.mark_read(id, true),
            9 => drop(outlook.add_folder(&format!("New {n}"), Some("inbox").filter(|_| self.dice(2) == 0))),
            10 if !own.is_empty() => {
                let folder = own[self.dice(own.len())];
                match self.dice(7) {
                    0 | 1 => outlook.rename_folder(folder, &format!("New name {n}")),
                    2 | 3 => outlook.delete_folder(folder),
                    4 if self.empties_bins => outlook.purge_folder(folder),
                    _ => outlook.move_folder(folder, ["inbox", "archive", "junkemail"][self.dice(3)]),
                }
            }
            _ if self.loses_places && self.dice(6) == 0 => outlook.expire_cursors(),
            _ => outlook.hide(id, 1),
        }
    }
}

#[tokio::test]
async fn any_history_of_a_mailbox_ends_in_the_same_memory() {
    for seed in 1..=40_u64 {
        let (mut reader, mut people) = (Reader::of(Fakes::start().await), People::new(seed));
        let outlook = reader.fakes.outlook();
        outlook.fill(80, 6);
        outlook.forget_returns(seed % 2 == 0);
        outlook.tell_parts(seed % 3 == 0);
        reader.full().await.expect("a pass");
        for _ in 0..120 {
            match people.dice(12) {
                0 => reader.sync().await,
                1 if people.dice(3) == 0 => outlook.expire_cursors(),
                _ => people.act(&outlook),
            }
        }
        for _ in 0..3 {
            reader.sync().await;
        }
        println!("seed {seed}");
        reader.assert_equal();
    }
}

/// A round takes many requests, and nobody waits for its end. Graph may tell late of changes.
#[tokio::test]
async fn any_history_during_rounds_ends_in_the_same_memory() {
    for seed in 60..140_u64 {
        let (mut reader, mut people) = (Reader::of(Fakes::start().await), People::new(seed));
        let outlook = reader.fakes.outlook();
        outlook.fill(if seed % 5 == 0 { 300 } else { 60 }, if seed % 5 == 0 { 2 } else { 6 });
        outlook.forget_returns(seed % 2 == 0);
        outlook.tell_parts(seed % 3 == 0);
        outlook.set_delta_lag(Duration::from_secs(20 * (seed / 2 % 2)));
        (people.empties_bins, people.loses_places) = (seed % 4 == 0, seed % 5 == 0);
        let at_work = outlook.clone();
        reader.meanwhile = Box::new(move || (0..people.dice(4)).for_each(|_| people.act(&at_work)));
        for _ in 0..7 {
            reader.sync().await;
            reader.fakes.advance(Duration::from_secs(5));
        }
        reader.meanwhile = Box::new(|| ());
        outlook.find_everything();
        reader.fakes.advance(Duration::from_secs(60));
        for _ in 0..3 {
            reader.sync().await;
        }
        println!("seed {seed}");
        reader.assert_equal();
    }
}
