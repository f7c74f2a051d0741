//! Tributary as its users meet it: the command line, the HTTP server, the pages in a real browser.

mod agent;
mod agents;
mod app;
mod attacks;
mod backup;
mod browser;
mod channels;
mod cli;
mod demo;
mod door_pages;
mod feed;
mod frame;
mod http;
mod intake;
mod intake_faults;
mod lifecycle;
mod looks;
mod made_up_channel;
mod memory;
mod path;
mod realtime;
mod recordings;
mod rest;
mod same_answers;
mod source_pages;
mod sources;
