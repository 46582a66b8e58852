//! The states of window control at a base station, as a table (Table 4 of the paper; WINC-ST).
//!
//! The paper's figure is missing and its table has gaps (GAP-3, WINC-ST-8, WINC-ST-9): here every
//! input has a row in every state. The engine runs from these rows, and the diagram in
//! `docs/window-control.md` is made from them.

use core::fmt::Write;

/// What a base station is to a mobile host; BUF is of one flow of a mobile host that it monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// WINC_IDLE: the mobile host has not registered here.
    Idle,
    /// WINC_MON: its data passes, and the windows in its ACKs are looked at.
    Mon,
    /// WINC_BUF: the flow's window is closed, its data is held.
    Buf,
    /// WINC_TUN: it is with another base station, its data goes there.
    Tun,
}

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// The mobile host registers, or renews that.
    Registration,
    /// It leaves.
    Deregistration,
    /// An ACK of its flow closes the window.
    ClosedWindow,
    /// An ACK of its flow offers a window.
    OpenWindow,
    /// A binding update: it is with another base station.
    BindingUpdate,
    /// It is no longer known where it is.
    BindingExpired,
    /// Nothing was heard of it for a long time.
    Silence,
}

/// What then is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Hold the flow's data from now on.
    Hold,
    /// Send what is held to the mobile host, before anything else of the flow.
    Flush,
    /// Send what is held through the tunnel, and what comes after it.
    Tunnel,
    /// Let go of what is held.
    Free,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Before.
    pub state: State,
    /// What happens.
    pub input: Input,
    /// After.
    pub next: State,
    /// What is done.
    pub action: Action,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] = [State::Idle, State::Mon, State::Buf, State::Tun];

    /// The paper's name without its prefix.
    pub const fn name(self) -> &'static str {
        match self {
            State::Idle => "IDLE",
            State::Mon => "MON",
            State::Buf => "BUF",
            State::Tun => "TUN",
        }
    }
}

impl Input {
    /// All of them.
    pub const ALL: [Input; 7] = [
        Input::Registration,
        Input::Deregistration,
        Input::ClosedWindow,
        Input::OpenWindow,
        Input::BindingUpdate,
        Input::BindingExpired,
        Input::Silence,
    ];

    /// A few words.
    pub const fn name(self) -> &'static str {
        match self {
            Input::Registration => "registration",
            Input::Deregistration => "deregistration",
            Input::ClosedWindow => "closed window",
            Input::OpenWindow => "open window",
            Input::BindingUpdate => "binding update",
            Input::BindingExpired => "binding expired",
            Input::Silence => "silence",
        }
    }
}

impl Action {
    /// A few words; none for nothing.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Nothing => "",
            Action::Hold => "hold",
            Action::Flush => "flush to the mobile host",
            Action::Tunnel => "tunnel",
            Action::Free => "free",
        }
    }
}

const fn row(state: State, input: Input, next: State, action: Action) -> Row {
    Row { state, input, next, action }
}

/// Every input in every state, in the order of [`State::ALL`] and [`Input::ALL`].
#[rustfmt::skip]
pub const TABLE: [Row; State::ALL.len() * Input::ALL.len()] = {
    use Action::*;
    use Input::*;
    use State::*;
    [
        row(Idle, Registration,   Mon,  Nothing), // WINC-ST-2
        row(Idle, Deregistration, Idle, Nothing),
        row(Idle, ClosedWindow,   Idle, Nothing), // WINC-ST-1
        row(Idle, OpenWindow,     Idle, Nothing),
        row(Idle, BindingUpdate,  Tun,  Tunnel),  // It was here, and that was forgotten.
        row(Idle, BindingExpired, Idle, Nothing),
        row(Idle, Silence,        Idle, Nothing),
        row(Mon,  Registration,   Mon,  Nothing),
        row(Mon,  Deregistration, Idle, Nothing),
        row(Mon,  ClosedWindow,   Buf,  Hold),    // WINC-ST-3
        row(Mon,  OpenWindow,     Mon,  Nothing),
        row(Mon,  BindingUpdate,  Tun,  Tunnel),  // WINC-ST-6
        row(Mon,  BindingExpired, Mon,  Nothing), // An older stay's.
        row(Mon,  Silence,        Mon,  Nothing),
        row(Buf,  Registration,   Buf,  Nothing), // WINC-ST-9
        row(Buf,  Deregistration, Idle, Free),    // WINC-ST-9
        row(Buf,  ClosedWindow,   Buf,  Nothing),
        row(Buf,  OpenWindow,     Mon,  Flush),   // WINC-ST-4
        row(Buf,  BindingUpdate,  Tun,  Tunnel),  // WINC-ST-5
        row(Buf,  BindingExpired, Buf,  Nothing), // An older stay's.
        row(Buf,  Silence,        Mon,  Free),    // WINC-ST-9
        row(Tun,  Registration,   Mon,  Flush),   // WINC-ST-8
        row(Tun,  Deregistration, Idle, Nothing),
        row(Tun,  ClosedWindow,   Tun,  Nothing),
        row(Tun,  OpenWindow,     Tun,  Nothing),
        row(Tun,  BindingUpdate,  Tun,  Nothing), // Elsewhere, or the same again.
        row(Tun,  BindingExpired, Idle, Nothing), // WINC-ST-7
        row(Tun,  Silence,        Tun,  Nothing),
    ]
};

/// The row of an input in a state.
pub fn step(state: State, input: Input) -> Row {
    TABLE[state as usize * Input::ALL.len() + input as usize]
}

/// The rows that lead to another state or do something, as a Mermaid state diagram.
pub fn diagram() -> String {
    let mut text = String::from("stateDiagram-v2\n    [*] --> IDLE\n");
    for Row { state, input, next, action } in TABLE {
        if next == state && action == Action::Nothing {
            continue;
        }
        let (state, next, input, action) = (state.name(), next.name(), input.name(), action.name());
        let separator = if action.is_empty() { "" } else { " / " };
        let _ = writeln!(text, "    {state} --> {next}: {input}{separator}{action}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winc_st_1_to_9_every_input_has_its_row_in_every_state() {
        for (index, row) in TABLE.iter().enumerate() {
            let (state, input) = (index / Input::ALL.len(), index % Input::ALL.len());
            assert_eq!((row.state, row.input), (State::ALL[state], Input::ALL[input]));
            assert_eq!(step(row.state, row.input), *row);
        }
    }

    /// BUF is of a flow and MON of its mobile host: what happens to the host must not part them.
    #[test]
    fn winc_st_3_what_happens_to_a_mobile_host_leads_its_flows_to_where_it_is() {
        for input in Input::ALL {
            let (flow, host) = (step(State::Buf, input).next, step(State::Mon, input).next);
            let is_of_host = !matches!(input, Input::ClosedWindow | Input::OpenWindow);
            assert!(!is_of_host || flow == host || (flow, host) == (State::Buf, State::Mon));
        }
    }

    #[test]
    fn the_diagram_in_the_documentation_is_this_tables() {
        let page = include_str!("../../../../docs/window-control.md");
        let diagram = diagram();
        let is_there = page.contains(&diagram);
        assert!(is_there, "docs/window-control.md needs this diagram:\n{diagram}");
    }
}
