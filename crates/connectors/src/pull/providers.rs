//! The list of providers. A new provider adds its folder and a line here.

use super::{Provider, drive, hubspot, quickbooks};

/// Every provider that this program reads, in the order in which people see them.
pub static ALL: &[Provider] = &[&hubspot::SPEC, &drive::SPEC, &quickbooks::SPEC];
