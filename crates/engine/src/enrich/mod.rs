//! What is made of a text beside finding it again. Rules now; models join them.

pub mod rules;
