//! `tributary mcp setup CLIENT`: the words of the page "Use with…", with a fresh key; or the file that the program reads, written.

use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::{Scope, Secret};
use engine::assistants::setup::{Client, Content, File, PROGRAM, Server};
use engine::keys::{self, NewKey};
use engine::{Config, assistants};
use std::io::Write as _;

use super::super::{caller, env};

#[derive(clap::Args)]
pub struct Args {
    /// The program: claude, claude-desktop, claude-code, chatgpt, cursor, vscode, codex or sdk.
    client: Client,
    /// Write it into the program's file. What the file has stays.
    #[arg(long)]
    write: bool,
    /// The server, if it is elsewhere. Then a key of that server is needed too.
    #[arg(long, env = "TRIBUTARY_URL", value_parser = engine::config::server_url)]
    url: Option<String>,
    /// A key that there is already. Default: one is made.
    #[arg(long, env = "TRIBUTARY_KEY", hide_env_values = true)]
    key: Option<Secret>,
    /// The rights of the key that is made: read, write, agent.
    #[arg(long, value_delimiter = ',', default_value = "read")]
    scopes: Vec<Scope>,
    /// The person it belongs to, by e-mail address.
    #[arg(long)]
    person: Option<String>,
    /// The tenant, by name or id. Default: yours.
    #[arg(long)]
    tenant: Option<String>,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let client = args.client;
    let is_elsewhere = args.url.as_ref().is_some_and(|url| *url != config.base_url());
    let has_oauth = match &args.url {
        Some(url) if is_elsewhere => url.starts_with("https://"),
        _ => assistants::is_on(&config),
    };
    let program = program();
    let to_write = match client.file(Server { base_url: "", has_oauth, key: None, program: &program }) {
        _ if !args.write => None,
        None => bail!("{} reads no file that could be written\n\nhint: leave `--write` out", client.title()),
        Some(file) => {
            let path = path(&file)?;
            // Before a key is made that nobody would use.
            if args.key.is_none() && file.content.is_named_in(&read(&path)?) {
                bail!(
                    "{} names this server already\n\nhint: take the entry `tributary` out of it for a new key, or give a key with --key",
                    path.display()
                );
            }
            Some(path)
        }
    };
    let key = match &args.key {
        _ if !client.takes_key() => None,
        Some(key) => Some(key.clone()),
        None if is_elsewhere => bail!(
            "a key of that server is needed\n\nhint: make one there with `tributary key create laptop --scopes read`, and give it with --key"
        ),
        None => Some(made(&config, &args).await?),
    };
    let base_url = args.url.clone().unwrap_or_else(|| config.base_url());
    let server = Server { base_url: &base_url, has_oauth, key: key.as_ref().map(Secret::reveal), program: &program };
    let mut steps = client.steps(server);
    println!("{}\n", client.title());
    if let Some((path, file)) = to_write.zip(client.file(server)) {
        write(&path, &file.content)?;
        println!("Written: {}", path.display());
        let text = file.content.text();
        if file.is_of_project && server.key.is_some_and(|key| text.contains(key)) {
            println!("It has the key: keep it out of version control.");
        }
        println!();
        // What remains: the file stands for what is put into it, and for Claude Code's command.
        let is_done = |copy: &String| *copy == text || copy.starts_with("claude mcp add");
        steps.retain(|step| !step.copy.as_ref().is_some_and(is_done));
    }
    for (nth, step) in steps.into_iter().enumerate() {
        println!("{}. {}", nth + 1, step.says);
        if let Some(copy) = step.copy {
            println!();
            copy.lines().for_each(|line| println!("    {line}"));
            println!();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file's place on this device.
fn path(file: &File) -> anyhow::Result<PathBuf> {
    let home = || std::env::var_os("HOME").context("HOME is not set");
    let folder = if file.is_of_project { std::env::current_dir()? } else { home()?.into() };
    Ok(folder.join(file.path))
}

/// The program as others start it: its name where that is enough, else its path.
fn program() -> String {
    let Ok(own) = std::env::current_exe().and_then(|own| own.canonicalize()) else { return PROGRAM.into() };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_own = |folder: PathBuf| folder.join(PROGRAM).canonicalize().is_ok_and(|found| found == own);
    if std::env::split_paths(&folders).any(is_own) { PROGRAM.into() } else { own.display().to_string() }
}

async fn made(config: &Config, args: &Args) -> anyhow::Result<Secret> {
    if args.scopes.contains(&Scope::Service) {
        bail!("a program gets no key that manages everything\n\nhint: its rights are read, write and agent");
    }
    let env = env(config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let name = format!("{} over MCP", args.client.title());
    let new = NewKey { name: &name, scopes: &args.scopes, person: args.person.as_deref() };
    let made = keys::create(&env, &caller, &new).await?;
    eprintln!("key {} was made for it; revoke it with `tributary key revoke {}`", made.name, made.id);
    Ok(made.secret)
}

/// The text of a file; empty if there is none.
fn read(path: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// Writes it into the file, which has a secret from then on. A crash in between leaves the old file.
fn write(path: &Path, content: &Content) -> anyhow::Result<()> {
    let known = read(path)?;
    let merged = content.merged_into(&known).map_err(|why| {
        anyhow::anyhow!(
            "{} was left as it is: {why}\n\nhint: leave `--write` out, and put it in by hand",
            path.display()
        )
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let beside = path.with_extension("tributary-new");
    let written = || -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(merged.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    written().with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_with_a_key_is_its_owners_alone_and_keeps_what_it_had() {
        let folder = std::env::temp_dir().join(format!("tributary-setup-{}", uuid::Uuid::now_v7().simple()));
        let path = folder.join("deep/mcp.json");
        let server = Server { base_url: "https://h.example", has_oauth: false, key: Some("trb_x"), program: PROGRAM };
        let content = Client::Cursor.file(server).expect("a file").content;
        write(&path, &content).expect("written");
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, r#"{"theme":"dark"}"#).expect("written by somebody else");
        write(&path, &content).expect("written again");
        let text = std::fs::read_to_string(&path).expect("read");
        assert!(text.contains("dark") && text.contains("trb_x"), "{text}");
        std::fs::write(&path, "not JSON").expect("written by somebody else");
        assert!(write(&path, &content).is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "not JSON", "it was left as it is");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
