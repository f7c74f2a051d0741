//! Short forms of vectors, by which the nearest of many are found in the process, without reading the vectors themselves.
//!
//! A vector is taken as its difference from the mean of its segment. Each number of that becomes four bits: a sign, and how large it is. The signs alone
//! tell within a millisecond which of 100,000 vectors may be near (one look-up per eight numbers); all four bits tell the similarity of those to about
//! three digits. A segment is written once.
//!
//! The bytes of a segment, all numbers with their least significant byte first: a version, the dimensions, the counts of entries and documents, the
//! first number, the mean, the documents' ids; then for all entries, by rising number of the chunk, each kind by itself: the chunk's number counted from
//! the first, the position of its document, its id, three factors, and four bits per dimension.

use std::collections::HashSet;

use uuid::Uuid;

/// The first four bytes of a segment.
pub const VERSION: u32 = 1;
/// Four bits hold 16 steps of this part of the standard deviation.
const STEPS_PER_DEVIATION: f32 = 2.8;
/// So many times the wanted number are chosen by sign, and compared by all bits.
const CHOSEN: usize = 2;

/// A vector to be kept in short form.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The number of its chunk.
    pub n: i64,
    pub chunk_id: Uuid,
    pub document_id: Uuid,
    pub numbers: Vec<f32>,
}

/// A chunk and its similarity to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub n: i64,
    pub chunk_id: Uuid,
    pub document_id: Uuid,
    pub similarity: f32,
}

/// Some vectors of one tenant and model in short form.
pub struct Segment {
    /// The dimensions, filled up to a multiple of eight.
    width: usize,
    mean: Vec<f32>,
    first_n: i64,
    documents: Vec<Uuid>,
    numbers: Vec<u32>,
    of_documents: Vec<u32>,
    chunk_ids: Vec<Uuid>,
    factors: Vec<Factors>,
    nibbles: Vec<u8>,
    /// The highest bit of each nibble.
    signs: Vec<u8>,
}

/// The numbers by which a product with the short form becomes one with the vector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Factors {
    sign: f32,
    step: f32,
    /// The product of the mean and the difference.
    of_mean: f32,
}

impl Segment {
    /// The short forms of some vectors, which all have the same dimensions.
    pub fn of(mut vectors: Vec<Vector>) -> Self {
        vectors.sort_unstable_by_key(|vector| vector.n);
        vectors.dedup_by_key(|vector| vector.n);
        let dim = vectors.first().map_or(0, |vector| vector.numbers.len());
        let width = dim.next_multiple_of(8);
        let mut mean = vec![0.0_f32; width];
        for vector in &vectors {
            mean.iter_mut().zip(&vector.numbers).for_each(|(sum, number)| *sum += number / vectors.len() as f32);
        }
        let mut documents: Vec<Uuid> = vectors.iter().map(|vector| vector.document_id).collect();
        documents.sort_unstable();
        documents.dedup();
        let first_n = vectors.first().map_or(0, |vector| vector.n);
        let mut segment = Self {
            width,
            mean,
            first_n,
            documents,
            numbers: Vec::with_capacity(vectors.len()),
            of_documents: Vec::with_capacity(vectors.len()),
            chunk_ids: Vec::with_capacity(vectors.len()),
            factors: Vec::with_capacity(vectors.len()),
            nibbles: Vec::with_capacity(vectors.len() * width / 2),
            signs: Vec::new(),
        };
        vectors.iter().for_each(|vector| segment.push(vector));
        segment.signs = signs(&segment.nibbles);
        segment
    }

    fn push(&mut self, vector: &Vector) {
        let mut difference: Vec<f32> = self.mean.iter().map(|mean| -mean).collect();
        difference.iter_mut().zip(&vector.numbers).for_each(|(difference, number)| *difference += number);
        let squares: f32 = difference.iter().map(|number| number * number).sum();
        let per_step = STEPS_PER_DEVIATION / (squares / self.width.max(1) as f32).sqrt();
        let steps: Vec<f32> = difference
            .iter()
            .map(|number| if per_step.is_finite() { (number * per_step).floor().clamp(-8.0, 7.0) + 0.5 } else { 0.5 })
            .collect();
        let sizes: f32 = difference.iter().map(|number| number.abs()).sum();
        let ratio = |by: f32| if by > 0.0 { squares / by } else { 0.0 };
        self.factors.push(Factors {
            sign: ratio(sizes),
            step: ratio(product(&difference, &steps)),
            of_mean: product(&self.mean, &difference),
        });
        let nibble = |step: f32| (step + 7.5) as u8;
        self.nibbles.extend(steps.as_chunks::<2>().0.iter().map(|[low, high]| nibble(*low) | (nibble(*high) << 4)));
        self.numbers.push(u32::try_from(vector.n - self.first_n).unwrap_or(u32::MAX));
        self.chunk_ids.push(vector.chunk_id);
        let place = self.documents.binary_search(&vector.document_id).unwrap_or_default();
        self.of_documents.push(u32::try_from(place).unwrap_or(u32::MAX));
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The memory that it takes.
    pub fn size(&self) -> usize {
        self.len() * (size_of::<Factors>() + 8 + 16 + self.width / 2 + self.width / 8) + self.documents.len() * 16
    }

    /// The numbers of its chunks.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        self.numbers.iter().map(|offset| self.first_n + i64::from(*offset))
    }

    pub fn chunk_ids(&self) -> &[Uuid] {
        &self.chunk_ids
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(self.size());
        bytes.extend(VERSION.to_le_bytes());
        [self.width, self.len(), self.documents.len()].iter().for_each(|n| bytes.extend(count(*n)));
        bytes.extend(self.first_n.to_le_bytes());
        self.mean.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        self.documents.iter().for_each(|id| bytes.extend(id.as_bytes()));
        self.numbers.iter().chain(&self.of_documents).for_each(|number| bytes.extend(number.to_le_bytes()));
        self.chunk_ids.iter().for_each(|id| bytes.extend(id.as_bytes()));
        for Factors { sign, step, of_mean } in &self.factors {
            [sign, step, of_mean].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        bytes.extend(&self.nibbles);
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote. None: it is damaged, or of another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        if u32::from_le_bytes(rest.array()?) != VERSION {
            return None;
        }
        let mut count = || Some(usize::try_from(u32::from_le_bytes(rest.array()?)).unwrap_or_default());
        let (width, n, n_documents) = (count()?, count()?, count()?);
        if width % 8 != 0 {
            return None;
        }
        let first_n = i64::from_le_bytes(rest.array()?);
        let mean = rest.all(width, f32::from_le_bytes)?;
        let documents = rest.all(n_documents, Uuid::from_bytes)?;
        let numbers = rest.all(n, u32::from_le_bytes)?;
        let of_documents = rest.all(n, u32::from_le_bytes)?;
        let chunk_ids = rest.all(n, Uuid::from_bytes)?;
        let factors = rest.all(n.checked_mul(3)?, f32::from_le_bytes)?;
        let factors = factors.as_chunks::<3>().0.iter();
        let factors = factors.map(|[sign, step, of_mean]| Factors { sign: *sign, step: *step, of_mean: *of_mean });
        let factors: Vec<Factors> = factors.collect();
        let nibbles = rest.take(n.checked_mul(width / 2)?)?.to_vec();
        let is_known = |place: &u32| usize::try_from(*place).is_ok_and(|place| place < n_documents);
        if !rest.0.is_empty() || !of_documents.iter().all(is_known) || !numbers.is_sorted() {
            return None;
        }
        let signs = signs(&nibbles);
        Some(Self { width, mean, first_n, documents, numbers, of_documents, chunk_ids, factors, nibbles, signs })
    }

    fn near(&self, entry: usize, similarity: f32) -> Near {
        Near {
            n: self.first_n + i64::from(self.numbers[entry]),
            chunk_id: self.chunk_ids[entry],
            document_id: self.documents[self.of_documents[entry] as usize],
            similarity,
        }
    }

    /// The entry of a chunk, by its number.
    fn entry(&self, n: i64) -> Option<usize> {
        let wanted = u32::try_from(n.checked_sub(self.first_n)?).ok()?;
        self.numbers.binary_search(&wanted).ok()
    }
}

/// The highest bit of each nibble, eight to a byte.
fn signs(nibbles: &[u8]) -> Vec<u8> {
    let of_eight = |[a, b, c, d]: &[u8; 4]| {
        let two = |byte: u8| (byte >> 3 & 1) | (byte >> 6 & 2);
        two(*a) | two(*b) << 2 | two(*c) << 4 | two(*d) << 6
    };
    nibbles.as_chunks::<4>().0.iter().map(of_eight).collect()
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn all<const N: usize, T>(&mut self, n: usize, read: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let bytes = self.take(n.checked_mul(N)?)?;
        Some(bytes.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect())
    }
}

/// A question to some segments of one model.
pub struct Question<'a, S> {
    segments: &'a [S],
    /// The difference of the question from the mean of each segment, and the product of the two.
    asked: Vec<(Vec<f32>, f32)>,
}

impl<'a, S: AsRef<Segment>> Question<'a, S> {
    pub fn new(segments: &'a [S], vector: &[f32]) -> Self {
        let asked = |segment: &S| {
            let mean = &segment.as_ref().mean;
            let numbers = vector.iter().copied().chain(std::iter::repeat(0.0));
            let difference: Vec<f32> = mean.iter().zip(numbers).map(|(mean, number)| number - mean).collect();
            (difference, product(mean, vector))
        };
        Self { segments, asked: segments.iter().map(asked).collect() }
    }

    /// The nearest `limit` chunks, nearest first; of `documents` alone, if they are given. A chunk that has been removed may be among them.
    pub fn nearest(&self, limit: usize, documents: Option<&HashSet<Uuid>>) -> Vec<Near> {
        let mut chosen = Chosen::new(limit.saturating_mul(CHOSEN));
        for (nth, (segment, (question, base))) in self.segments.iter().zip(&self.asked).enumerate() {
            let segment = segment.as_ref();
            let allowed: Option<Vec<bool>> =
                documents.map(|allowed| segment.documents.iter().map(|id| allowed.contains(id)).collect());
            let (table, unit) = sums(question);
            let signs = segment.signs.chunks_exact((segment.width / 8).max(1));
            for (entry, (signs, factors)) in signs.zip(&segment.factors).enumerate() {
                if allowed.as_ref().is_some_and(|allowed| !allowed[segment.of_documents[entry] as usize]) {
                    continue;
                }
                let sum: i32 = table.iter().zip(signs).map(|(sums, eight)| i32::from(sums[usize::from(*eight)])).sum();
                chosen.add(factors.sign * sum as f32 * unit + factors.of_mean + base, nth, entry);
            }
        }
        let mut near: Vec<Near> = chosen.end().into_iter().map(|(nth, entry)| self.near(nth, entry)).collect();
        near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.chunk_id.cmp(&b.chunk_id)));
        // A chunk may be in two segments. One that got another number is there with both; only the caller knows which one it has now.
        let mut seen = HashSet::with_capacity(near.len());
        near.retain(|near| seen.insert(near.n));
        near.truncate(limit);
        near
    }

    /// The chunk with a number, if a segment has it.
    pub fn get(&self, n: i64) -> Option<Near> {
        let found = self.segments.iter().enumerate().rev();
        let (nth, entry) = found.into_iter().find_map(|(nth, segment)| Some((nth, segment.as_ref().entry(n)?)))?;
        Some(self.near(nth, entry))
    }

    fn near(&self, nth: usize, entry: usize) -> Near {
        let (segment, (question, base)) = (self.segments[nth].as_ref(), &self.asked[nth]);
        let factors = segment.factors[entry];
        let bytes = segment.width / 2;
        let nibbles = &segment.nibbles[entry * bytes..(entry + 1) * bytes];
        let parts = question
            .as_chunks::<2>()
            .0
            .iter()
            .zip(nibbles)
            .map(|([low, high], byte)| low * (f32::from(byte & 15) - 7.5) + high * (f32::from(byte >> 4) - 7.5));
        segment.near(entry, factors.step * parts.sum::<f32>() + factors.of_mean + base)
    }
}

/// For each eight numbers of a question, the sums of these with the signs of every byte, in units of the second value.
fn sums(question: &[f32]) -> (Vec<[i16; 256]>, f32) {
    let most = question.as_chunks::<8>().0.iter().map(|eight| eight.iter().map(|number| number.abs()).sum::<f32>());
    let unit = most.fold(f32::MIN_POSITIVE, f32::max) / f32::from(i16::MAX);
    let of_eight = |eight: &[f32; 8]| {
        let mut sums = [0_i16; 256];
        for (signs, sum) in (0_u8..=255).zip(&mut sums) {
            let signed = |(nth, number): (usize, &f32)| if signs >> nth & 1 == 1 { *number } else { -number };
            *sum = (eight.iter().enumerate().map(signed).sum::<f32>() / unit) as i16;
        }
        sums
    };
    (question.as_chunks::<8>().0.iter().map(of_eight).collect(), unit)
}

/// The entries with the largest estimates.
struct Chosen {
    most: usize,
    /// Estimates below that are not among the first `most`.
    least: f32,
    entries: Vec<(f32, u32, u32)>,
}

impl Chosen {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), least: f32::NEG_INFINITY, entries: Vec::new() }
    }

    fn add(&mut self, estimate: f32, segment: usize, entry: usize) {
        if estimate <= self.least {
            return;
        }
        self.entries.push((estimate, segment as u32, entry as u32));
        if self.entries.len() >= self.most.saturating_mul(4) {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.entries.len() > self.most {
            self.entries.select_nth_unstable_by(self.most - 1, |a, b| b.0.total_cmp(&a.0));
            self.entries.truncate(self.most);
            self.least = self.entries.iter().map(|(estimate, ..)| *estimate).fold(f32::INFINITY, f32::min);
        }
    }

    fn end(mut self) -> Vec<(usize, usize)> {
        self.shrink();
        self.entries.into_iter().map(|(_, segment, entry)| (segment as usize, entry as usize)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same every time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> f32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        }

        /// Of unit length, and nearer to `around` than to others.
        fn vector(&mut self, around: &[f32]) -> Vec<f32> {
            let vector: Vec<f32> = around.iter().map(|number| number + 0.6 * self.next()).collect();
            let length = product(&vector, &vector).sqrt();
            vector.into_iter().map(|number| number / length).collect()
        }
    }

    fn vectors(dim: usize, n: usize) -> Vec<Vector> {
        let mut numbers = Numbers(dim as u64);
        let topics: Vec<Vec<f32>> = (0..20).map(|_| (0..dim).map(|_| 0.3 + numbers.next()).collect()).collect();
        (0..n)
            .map(|nth| Vector {
                n: 1_000 + 3 * nth as i64,
                chunk_id: Uuid::from_u128(nth as u128),
                document_id: Uuid::from_u128(1_000_000 + nth as u128 / 4),
                numbers: numbers.vector(&topics[nth % 20]),
            })
            .collect()
    }

    fn exact(all: &[Vector], question: &[f32], limit: usize) -> Vec<Uuid> {
        let mut all: Vec<(f32, Uuid)> =
            all.iter().map(|vector| (product(&vector.numbers, question), vector.chunk_id)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    #[test]
    fn the_nearest_are_found_and_their_similarity_is_nearly_exact() {
        for dim in [100, 256, 384] {
            let all = vectors(dim, 4_000);
            let (some, rest) = all.split_at(3_000);
            let segments = [some, rest].map(|some| std::sync::Arc::new(Segment::of(some.to_vec())));
            let (mut n_found, mut numbers) = (0, Numbers(7));
            for nth in 0..50 {
                let asked = numbers.vector(&all[nth * 70].numbers);
                let question = Question::new(&segments, &asked);
                let near = question.nearest(100, None);
                assert_eq!(near.len(), 100);
                let expected = exact(&all, &asked, 10);
                n_found += expected.iter().filter(|id| near.iter().any(|near| near.chunk_id == **id)).count();
                for near in near.iter().take(10) {
                    let vector = all.iter().find(|vector| vector.chunk_id == near.chunk_id).expect("its vector");
                    assert_eq!((near.n, near.document_id), (vector.n, vector.document_id));
                    let off = (near.similarity - product(&vector.numbers, &asked)).abs();
                    assert!(off < 0.03, "{dim}: {off}");
                    assert_eq!(question.get(near.n), Some(*near));
                }
            }
            // Directions at random are harder to tell apart than those of texts, where 98 of 100 are found.
            assert!(n_found >= 430, "{dim}: {n_found} of 500");
        }
    }

    #[test]
    fn only_the_allowed_documents_are_searched() {
        let all = vectors(64, 400);
        let segments = [std::sync::Arc::new(Segment::of(all.clone()))];
        let question = Question::new(&segments, &all[9].numbers);
        let allowed: HashSet<Uuid> = [1_000_002, 1_000_050].map(Uuid::from_u128).into();
        let near = question.nearest(100, Some(&allowed));
        assert_eq!(near.len(), 8);
        assert!(near.iter().all(|near| allowed.contains(&near.document_id)) && near[0].n == all[9].n);
        assert_eq!(question.nearest(3, Some(&HashSet::new())), []);
        assert_eq!((question.get(1_001), question.get(-5), question.get(i64::MIN)), (None, None, None));
    }

    #[test]
    fn a_segment_is_the_same_after_a_journey_and_a_damaged_one_is_refused() {
        for all in [vectors(12, 50), vectors(8, 1), Vec::new()] {
            let segment = Segment::of(all.clone());
            let bytes = segment.to_bytes();
            let back = Segment::parse(&bytes).expect("a segment");
            assert_eq!((back.len(), back.to_bytes(), &back.signs), (all.len(), bytes.clone(), &segment.signs));
            for damaged in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &bytes[4..], &[]] {
                assert!(Segment::parse(damaged).is_none());
            }
        }
        let same = Vector { n: 5, chunk_id: Uuid::nil(), document_id: Uuid::nil(), numbers: vec![0.5; 8] };
        let segments = [std::sync::Arc::new(Segment::of(vec![same.clone(), Vector { n: 6, ..same }]))];
        let near = Question::new(&segments, &[0.25; 8]).get(6).expect("an entry");
        assert!((near.similarity - 1.0).abs() < 1e-6, "vectors that equal their mean: {near:?}");
    }
}
