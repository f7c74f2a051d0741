//! Rows that go in bites: a statement removes a limited number of them, and its caller repeats it until none is left.

/// The statement that removes up to $3 rows of a table. `which` is the condition on a row `t`, and may end with an order.
///
/// A row that another session changes meanwhile is left for the next bite: it has moved to another place.
pub(crate) fn delete(table: &str, which: &str) -> String {
    format!("delete from {table} where ctid = any (array(select t.ctid from {table} t where {which} limit $3))")
}
