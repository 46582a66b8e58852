//! What others have set up with nft(8), as `nft -y list ruleset` writes it: where chains and
//! flowtables hang. (Its JSON does not name the devices of a chain before nft 1.0.7.)

use std::process::Command;

/// All tables, chains and flowtables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// Family and name of each table.
    pub tables: Vec<(String, String)>,
    /// What hangs on hooks.
    pub hooked: Vec<Hooked>,
}

/// A chain or a flowtable on a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooked {
    /// What it is.
    pub kind: Kind,
    /// The table's family.
    pub family: String,
    /// The table's name.
    pub table: String,
    /// Its own name.
    pub name: String,
    /// What a chain is for: filter, nat, route; nothing for a flowtable.
    pub purpose: String,
    /// True if a flowtable is the device's own: the machine sees none of its packets.
    pub in_hardware: bool,
    /// The hook: ingress, forward …
    pub hook: String,
    /// Its place among others on the hook: lower ones are first.
    pub priority: i64,
    /// On which devices; empty if on all.
    pub devices: Vec<String>,
}

/// What hangs on a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A chain of rules.
    #[default]
    Chain,
    /// A table of connections that the kernel forwards past its usual path.
    Flowtable,
}

impl Ruleset {
    /// The one of the calling thread's network namespace; empty if nft cannot be asked.
    pub fn read() -> Ruleset {
        let output = Command::new("nft").args(["-y", "list", "ruleset"]).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Ruleset::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads what nft lists.
    pub fn parse(text: &str) -> Ruleset {
        let mut found = Ruleset::default();
        let (mut family, mut table) = (String::new(), String::new());
        let mut open = Hooked::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["table", of, name, "{", ..] => {
                    ((family, table), open) = (((*of).into(), (*name).into()), Hooked::default());
                    found.tables.push((family.clone(), table.clone()));
                }
                ["chain" | "flowtable", name, "{"] => {
                    let kind = if words[0] == "chain" { Kind::Chain } else { Kind::Flowtable };
                    open = Hooked {
                        kind,
                        family: family.clone(),
                        table: table.clone(),
                        name: (*name).into(),
                        ..Hooked::default()
                    };
                }
                ["}"] if !open.hook.is_empty() => found.hooked.push(std::mem::take(&mut open)),
                _ => open.learn(&words),
            }
        }
        found
    }
}

impl Hooked {
    /// Takes what a line says of hook, devices and priority.
    fn learn(&mut self, words: &[&str]) {
        let is_head =
            matches!(words, ["type", ..] | ["hook", ..] | ["devices", ..] | ["flags", ..]);
        if !is_head {
            return;
        }
        let plain = |word: &str| word.trim_matches(['"', ';', ',']).to_owned();
        for pair in words.windows(2) {
            match *pair {
                ["type", purpose] => self.purpose = plain(purpose),
                ["flags", flag] => self.in_hardware |= plain(flag) == "offload",
                ["hook", hook] => self.hook = plain(hook),
                ["priority", number] => self.priority = plain(number).parse().unwrap_or(0),
                ["device", name] => self.devices.push(plain(name)),
                _ => {}
            }
        }
        if let Some(start) = words.iter().position(|word| *word == "devices") {
            let names = words[start..].iter().skip_while(|word| **word != "{").skip(1);
            let names = names.take_while(|word| !word.starts_with('}'));
            self.devices.extend(names.map(|name| plain(name)));
        }
    }

    /// True if it sees packets of this device.
    pub fn is_on(&self, device: &str) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|one| one == device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_flowtables_are_found_with_hook_device_and_priority() {
        let text = "table netdev theirs {\n\tchain first {\n\t\ttype filter hook ingress device \
                    \"d0\" priority -600; policy accept;\n\t\tip saddr 10.0.0.1 drop\n\t}\n\tchain \
                    second {\n\t\ttype filter hook ingress devices = { d0, d1 } priority 5; policy \
                    accept;\n\t}\n}\ntable inet f {\n\tflowtable ft {\n\t\thook ingress priority \
                    0\n\t\tdevices = { eth0, eth1 }\n\t\tflags \
                    offload\n\t}\n\n\tchain plain {\n\t\taccept\n\t}\n\n\t\
                    chain fw {\n\t\ttype filter hook forward priority 0; policy drop;\n\t}\n}\n";
        let found = Ruleset::parse(text);
        let table = |family: &str, name: &str| (family.to_owned(), name.to_owned());
        assert_eq!(found.tables, [table("netdev", "theirs"), table("inet", "f")]);
        let shown: Vec<String> = found
            .hooked
            .iter()
            .map(|one| {
                let Hooked { kind, name, hook, priority, devices, .. } = one;
                format!("{kind:?} {name} {hook} {priority} {}", devices.join("+"))
            })
            .collect();
        let expected = [
            "Chain first ingress -600 d0",
            "Chain second ingress 5 d0+d1",
            "Flowtable ft ingress 0 eth0+eth1",
            "Chain fw forward 0 ",
        ];
        assert_eq!(shown, expected);
        assert!(found.hooked[2].in_hardware && found.hooked[3].purpose == "filter");
        assert!(found.hooked[1].is_on("d1") && !found.hooked[0].is_on("d1"));
        assert_eq!(Ruleset::parse(""), Ruleset::default());
    }
}
