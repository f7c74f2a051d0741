//! How the values of settings are read and checked, and the defaults that depend on the machine.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use crate::lanes;
use crate::work::Slots;

/// Returns the default data folder: for root one that the server's user can reach, otherwise one below the user's home.
pub(super) fn default_data_dir() -> PathBuf {
    if store::embedded::is_root() {
        return "/var/lib/tributary".into();
    }
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::env::var_os("XDG_DATA_HOME").map_or_else(|| home().join(".local/share"), PathBuf::from).join("tributary")
}

pub(super) fn lane_slots(text: &str) -> Result<Slots, String> {
    let slots: Slots = text.parse()?;
    let is_known = |name: &&str| lanes::ALL.iter().any(|lane| lane.name == *name);
    if let Some(name) = slots.names().find(|name| !is_known(name)) {
        return Err(format!("there is no lane {name:?}: `tributary config` lists them"));
    }
    Ok(slots)
}

pub(super) fn public_url(text: &str) -> Result<String, String> {
    plain_url(text).ok_or_else(|| "a public URL looks like https://hear.example.com".into())
}

/// Parses the address at which providers reach us. They refuse plain http, but for a provider on this machine.
pub(super) fn hook_url(text: &str) -> Result<String, String> {
    let url = plain_url(text).ok_or("an address for notices looks like https://hear.example.com")?;
    let host = url.strip_prefix("http://").map(|rest| rest.split(['/', ':']).next().unwrap_or_default());
    match host {
        None | Some("127.0.0.1" | "localhost") => Ok(url),
        Some(_) => Err("providers post to https only; plain http is for 127.0.0.1 and localhost".into()),
    }
}

/// Parses an origin as browsers write it: in lower case, without a path or the scheme's default port.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let malformed = || "an origin looks like https://crm.example.com or http://localhost:8080".to_owned();
    let url = plain_url(text.trim()).ok_or_else(malformed)?.to_lowercase();
    let (scheme, host) = url.split_once("://").ok_or_else(malformed)?;
    let own_port = if scheme == "https" { ":443" } else { ":80" };
    match host.strip_suffix(own_port).unwrap_or(host) {
        host if host.is_empty() || host.contains('/') || host.starts_with(':') || host.len() > 150 => Err(malformed()),
        host => Ok(format!("{scheme}://{host}")),
    }
}

/// Parses a network or an address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    network.ok_or_else(|| "a network looks like 10.0.0.0/8, an address like 192.168.1.2".into())
}

pub fn base_url(text: &str) -> Result<String, String> {
    plain_url(text).ok_or_else(|| "a base URL looks like https://models.example.com/v1".into())
}

/// The address of a Tributary, without the `/mcp` that programs are given.
pub fn server_url(text: &str) -> Result<String, String> {
    let url = plain_url(text).ok_or("the address of a server looks like https://hear.example.com")?;
    Ok(url.strip_suffix("/mcp").unwrap_or(&url).to_owned())
}

fn plain_url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let is_plain = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || "-.:/[]_".contains(c));
    is_plain.then(|| text.trim_end_matches('/').to_owned())
}

pub(super) fn micros(dollars: f64) -> i64 {
    (dollars * 1_000_000.0).round() as i64
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    let dollars: Option<f64> = text.parse().ok().filter(|dollars: &f64| (0.0..1e9).contains(dollars));
    dollars.ok_or_else(|| "not an amount of dollars, such as 5 or 0.50".into())
}

pub(super) fn blob_url(text: &str) -> Result<String, String> {
    let is_folder = text.starts_with("file:///");
    let is_bucket = text.strip_prefix("s3://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if is_folder || is_bucket {
        Ok(text.to_owned())
    } else {
        Err("a place for blobs looks like file:///srv/blobs or s3://bucket/prefix".into())
    }
}

pub(super) fn rate_factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "a number above 0, such as 1 or 0.5".into())
}

/// Parses the name of a text search configuration, which must be a plain name.
pub(super) fn text_lang(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.len() <= 40 && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_plain { Ok(text.to_owned()) } else { Err("a language looks like english, german or simple".into()) }
}
