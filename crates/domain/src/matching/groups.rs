//! Sets of nodes that grow together.

/// Each node begins as a group of its own.
pub(super) struct Groups(Vec<usize>);

impl Groups {
    pub fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    pub fn root(&self, mut nth: usize) -> usize {
        while self.0[nth] != nth {
            nth = self.0[nth];
        }
        nth
    }

    /// Makes the groups of two nodes one.
    pub fn join(&mut self, a: usize, b: usize) {
        let of = (a, b);
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        self.0[high] = low;
        // The way to the root stays short.
        (self.0[of.0], self.0[of.1]) = (low, low);
    }
}
