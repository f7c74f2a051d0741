//! Help with and without the settings. Every setting is an option of every command; a command's `--help` shows its own options, and `--help-settings`
//! shows the settings.

use std::ffi::OsString;

use clap::{Args as _, Command};
use engine::Config;

const FLAG: &str = "--help-settings";

/// Whether the arguments ask for the settings. A word after `--` is none of our options.
pub fn are_asked_for(args: impl Iterator<Item = OsString>) -> bool {
    args.skip(1).take_while(|arg| arg != "--").any(|arg| arg == FLAG)
}

/// The command with its settings left out of its help, and of that of its subcommands.
pub fn hidden(command: Command) -> Command {
    let settings = settings();
    let is_setting = |id: &clap::Id| settings.get_arguments().any(|setting| setting.get_id() == id);
    command.mut_args(|arg| if is_setting(arg.get_id()) { arg.hide(true) } else { arg })
}

/// Prints every setting: its option, its environment variable, its default and what it does.
pub fn print() {
    print!("{}", settings().render_long_help());
}

fn settings() -> Command {
    let about = "Each setting is an option of every command, and an environment variable. `tributary config` prints the values in force.";
    let command =
        Config::augment_args(Command::new("tributary").disable_help_flag(true).about(about).max_term_width(100));
    command.override_usage("tributary [SETTINGS] <COMMAND>")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn every_argument_of_every_command_says_what_it_is() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} has no help");
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{path}: {} has no help", arg.get_id());
            }
            command.get_subcommands().for_each(|below| check(below, &path));
        }
        check(&Cli::command(), "");
    }

    #[test]
    fn settings_are_shown_where_they_are_asked_for_and_nowhere_else() {
        let asked = |words: &[&str]| are_asked_for(words.iter().map(OsString::from));
        assert!(asked(&["tributary", FLAG]) && asked(&["tributary", "up", FLAG]));
        assert!(!asked(&["tributary", "up", "--help"]) && !asked(&["tributary", "remember", "--", FLAG]));
        let mut command = hidden(Cli::command());
        command.build();
        let help = |command: &mut Command| command.render_long_help().to_string();
        assert!(!help(&mut command).contains("DATABASE_URL"));
        let up = command.find_subcommand_mut("up").expect("up");
        assert!(!help(up).contains("DATABASE_URL") && help(up).contains(FLAG));
        assert!(help(&mut settings()).contains("DATABASE_URL"));
    }
}
