//! The pieces of a query, as statements and filters of providers spell them.

use std::iter::Peekable;
use std::vec::IntoIter;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    /// Between single quotes; a quote inside is written `\'`.
    Quoted(String),
    Sign(String),
}

pub(crate) struct Tokens(Peekable<IntoIter<Token>>);

impl Tokens {
    pub fn of(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(first) = chars.next() {
            if first == '\'' {
                let mut quoted = String::new();
                while let Some(next) = chars.next().filter(|next| *next != '\'') {
                    quoted.push(if next == '\\' { chars.next().unwrap_or_default() } else { next });
                }
                tokens.push(Token::Quoted(quoted));
            } else if is_of_word(first) {
                let mut word = first.to_string();
                word.extend(std::iter::from_fn(|| chars.next_if(|next| is_of_word(*next))));
                tokens.push(Token::Word(word));
            } else if !first.is_whitespace() {
                let mut sign = first.to_string();
                if "<>!".contains(first) {
                    sign.extend(chars.next_if_eq(&'='));
                }
                tokens.push(Token::Sign(sign));
            }
        }
        Self(tokens.into_iter().peekable())
    }

    pub fn next(&mut self) -> Option<Token> {
        self.0.next()
    }

    /// Takes the next piece if it is this word, in any case, or this sign.
    pub fn take(&mut self, wanted: &str) -> bool {
        let is_wanted = |token: &Token| match token {
            Token::Word(word) => word.eq_ignore_ascii_case(wanted),
            Token::Sign(sign) => sign == wanted,
            Token::Quoted(_) => false,
        };
        self.0.next_if(is_wanted).is_some()
    }

    pub fn word(&mut self) -> Option<String> {
        match self.0.next()? {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Text between quotes, or a bare `true` or number.
    pub fn value(&mut self) -> Option<String> {
        match self.0.next()? {
            Token::Word(text) | Token::Quoted(text) => Some(text),
            Token::Sign(_) => None,
        }
    }

    pub fn is_empty(&mut self) -> bool {
        self.0.peek().is_none()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "._-:+".contains(c)
}
