//! How much a word weighs in a chunk, and how rare it is: BM25. Postings keep the first, rounded to a byte; searches multiply the two.

/// The usual constants of BM25: how soon more occurrences count for nothing, and how much a long chunk is discounted.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// An occurrence in the title counts as so many in the text.
pub const TITLE: f32 = 2.5;
/// The mean length of chunks, in lexemes, where none is known yet.
pub const USUAL_LENGTH: f32 = 80.0;
/// The largest weight is below `K1 + 1`.
const STEP: f32 = (K1 + 1.0) / 255.0;

/// The weight of a word that occurs `occurrences` times in a chunk of `length` lexemes, in steps of a byte. At least 1.
pub fn weight(occurrences: f32, length: f32, mean_length: f32) -> u8 {
    let discount = 1.0 - B + B * length / mean_length.max(1.0);
    let weight = occurrences * (K1 + 1.0) / (occurrences + K1 * discount);
    (weight / STEP).round().clamp(1.0, 255.0) as u8
}

/// The part of a chunk's score that is due to one word.
pub fn part(weight: u8, rarity: f32) -> f32 {
    f32::from(weight) * STEP * rarity
}

/// The rarity of a word that `n` of `total` chunks have. Never negative.
pub fn rarity(n: u64, total: u64) -> f32 {
    let (n, total) = (n as f64, total.max(n) as f64);
    (1.0 + (total - n + 0.5) / (n + 0.5)).ln() as f32
}

/// The weight in a text that `ts_rank` is asked to use; see [`occurrences`].
const RANK_OF_TEXT: f32 = 0.4;

/// The number of occurrences that led to this `ts_rank` of a single word, with weights 0.4 for texts and 1 for titles. The n-th occurrence adds
/// 1 / n² to it, so many occurrences can hardly be told apart; nor need they. More than texts alone can reach involves the title.
pub fn occurrences(ts_rank: f32) -> f32 {
    let sum = ts_rank * 1.644_934 / RANK_OF_TEXT;
    if sum <= 0.0 || sum > 1.645 {
        return sum.max(0.0);
    }
    let mut reached = 0.0;
    let is_reached = |n: &u8| {
        reached += 1.0 / f32::from(*n).powi(2);
        sum <= reached + 0.001
    };
    f32::from((1..=20).find(is_reached).unwrap_or(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_occurrences_weigh_more_and_long_chunks_less() {
        let by_occurrences: Vec<u8> = [1.0, 2.0, 3.0, 10.0, 200.0].map(|n| weight(n, 80.0, 80.0)).into();
        assert!(by_occurrences.is_sorted_by(|a, b| a < b), "{by_occurrences:?}");
        assert_eq!(by_occurrences[0], 116, "one occurrence in a chunk of the usual length weighs 1");
        let by_length: Vec<u8> = [10.0, 80.0, 200.0].map(|length| weight(1.0, length, 80.0)).into();
        assert!(by_length.is_sorted_by(|a, b| a > b), "{by_length:?}");
        assert_eq!((weight(0.01, 1_000.0, 10.0), weight(1_000.0, 1.0, 1_000.0)), (1, 255), "a byte, and never nothing");
        assert!((part(116, 2.0) - 2.0).abs() < 0.01);
    }

    #[test]
    fn the_fewer_chunks_have_a_word_the_rarer_it_is() {
        let rarities: Vec<f32> = [0, 1, 10, 500, 1_000, 2_000].map(|n| rarity(n, 1_000)).into();
        assert!(rarities.is_sorted_by(|a, b| a >= b) && rarities.iter().all(|rarity| *rarity > 0.0), "{rarities:?}");
    }

    #[test]
    fn occurrences_are_read_off_ts_rank() {
        let rank = |n: u32| (1..=n).map(|n| 1.0 / (n * n) as f32).sum::<f32>() * 0.4 / 1.644_934;
        for n in [1, 2, 3, 5] {
            assert_eq!(occurrences(rank(n)), n as f32);
        }
        assert_eq!(occurrences(0.0), 0.0);
        let title = occurrences(1.0 / 1.644_934);
        assert!((title - TITLE).abs() < 0.01, "once in the title: {title}");
        assert!(occurrences(rank(1_000)) >= 15.0);
    }
}
