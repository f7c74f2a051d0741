//! Drive's `q`: terms about a file, joined by `and`, `or`, `not` and brackets.

use std::cmp::Ordering;

use serde_json::Value;

use crate::clock::parse_iso;
use crate::drive::File;
use crate::tokens::{Token, Tokens};

pub(crate) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    InParents(String),
    Is { field: String, operator: String, value: String },
}

impl Filter {
    /// `None`: it does not parse.
    pub fn parse(q: &str) -> Option<Self> {
        let mut tokens = Tokens::of(q);
        if tokens.is_empty() {
            return Some(Self::All(Vec::new()));
        }
        let filter = any(&mut tokens)?;
        tokens.is_empty().then_some(filter)
    }

    pub fn holds(&self, file: &File) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.holds(file)),
            Self::Any(filters) => filters.iter().any(|filter| filter.holds(file)),
            Self::Not(filter) => !filter.holds(file),
            Self::InParents(parent) => {
                file.metadata["parents"].as_array().into_iter().flatten().any(|known| known == parent.as_str())
            }
            Self::Is { field, operator, value } => {
                let known = match &file.metadata[field] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let order = match (parse_iso(&known), parse_iso(value)) {
                    (Some(known), Some(value)) => known.cmp(&value),
                    _ => known.cmp(value),
                };
                match operator.as_str() {
                    "=" => order == Ordering::Equal,
                    "!=" => order != Ordering::Equal,
                    ">" => order.is_gt(),
                    ">=" => order.is_ge(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    _ => known.to_lowercase().contains(&value.to_lowercase()),
                }
            }
        }
    }
}

fn any(tokens: &mut Tokens) -> Option<Filter> {
    let mut filters = vec![all(tokens)?];
    while tokens.take("or") {
        filters.push(all(tokens)?);
    }
    Some(Filter::Any(filters))
}

fn all(tokens: &mut Tokens) -> Option<Filter> {
    let mut filters = vec![term(tokens)?];
    while tokens.take("and") {
        filters.push(term(tokens)?);
    }
    Some(Filter::All(filters))
}

fn term(tokens: &mut Tokens) -> Option<Filter> {
    if tokens.take("not") {
        return Some(Filter::Not(Box::new(term(tokens)?)));
    }
    if tokens.take("(") {
        let inside = any(tokens)?;
        return tokens.take(")").then_some(inside);
    }
    match tokens.next()? {
        Token::Quoted(parent) => (tokens.take("in") && tokens.take("parents")).then_some(Filter::InParents(parent)),
        Token::Word(field) => {
            let operators = ["=", "!=", ">=", "<=", ">", "<", "contains"];
            let operator = operators.into_iter().find(|operator| tokens.take(operator))?;
            Some(Filter::Is { field, operator: operator.to_owned(), value: tokens.value()? })
        }
        Token::Sign(_) => None,
    }
}
