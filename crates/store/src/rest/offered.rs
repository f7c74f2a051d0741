//! The tables and functions that are offered, with their columns, arguments and types.

/// A table with its columns and their PostgreSQL types.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, &'static str)],
    /// Whether a caller sees only the row of its own person, whatever else it may read.
    pub is_own: bool,
    /// Whether what was just written to a row is worth a notice, as SQL.
    pub(super) is_news: &'static str,
}

impl Table {
    pub fn find(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    pub fn column(&self, name: &str) -> Option<(&'static str, &'static str)> {
        self.columns.iter().copied().find(|(known, _)| *known == name)
    }
}

pub const TABLES: &[Table] = &[
    Table {
        name: "activities",
        columns: &[
            ("id", "uuid"),
            ("type", "text"),
            ("direction", "text"),
            ("sales_id", "int8"),
            ("contact_id", "int8"),
            ("processing_status", "text"),
            ("raw_data", "jsonb"),
            ("processed_data", "jsonb"),
            ("metadata", "jsonb"),
            ("locked_by", "uuid"),
            ("locked_at", "timestamptz"),
            ("lock_epoch", "int4"),
            ("provider_id", "uuid"),
            ("event_key", "text"),
            ("created_at", "timestamptz"),
            ("updated_at", "timestamptz"),
        ],
        is_own: false,
        is_news: "true",
    },
    Table {
        name: "crm_processing_nodes",
        columns: &[
            ("id", "uuid"),
            ("sales_id", "int8"),
            ("app_name", "text"),
            ("device_name", "text"),
            ("status", "text"),
            ("current_activity_id", "uuid"),
            ("processed_count", "int4"),
            ("last_heartbeat", "timestamptz"),
            ("enabled", "bool"),
            ("concurrency", "int4"),
            ("created_at", "timestamptz"),
        ],
        is_own: false,
        is_news: "t.shown_at = t.last_heartbeat",
    },
    // Only read: an agent asks who it is.
    Table {
        name: "sales",
        columns: &[
            ("id", "int8"),
            ("user_id", "uuid"),
            ("first_name", "text"),
            ("last_name", "text"),
            ("email", "text"),
            ("stale_threshold_minutes", "int4"),
            ("allow_remote_processing", "bool"),
            ("built_in_agent", "bool"),
            ("processes", "text[]"),
            ("created_at", "timestamptz"),
        ],
        is_own: true,
        is_news: "false",
    },
];

/// A function with its arguments.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub arguments: &'static [(&'static str, &'static str)],
    pub(super) does: Does,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// Returns the rows it claimed.
    Claim,
    /// Gives locks back, and returns how many.
    Recover { is_reset: bool },
}

pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "claim_next_pending_activity",
        arguments: &[("p_agent_sales_id", "int8"), ("p_limit", "int4"), ("p_source_types", "text[]")],
        does: Does::Claim,
    },
    Function {
        name: "claim_stale_activity",
        arguments: &[("p_agent_sales_id", "int8"), ("p_limit", "int4"), ("p_source_types", "text[]")],
        does: Does::Claim,
    },
    Function { name: "unlock_stale_locks", arguments: &[], does: Does::Recover { is_reset: false } },
    Function { name: "reset_stale_locks", arguments: &[], does: Does::Recover { is_reset: true } },
];
