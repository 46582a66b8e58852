//! What stands at the base station and at the mobile host of a plan.

use super::Plan;
use crate::roaming::stack;
use ::schemes::stack::Stack;
use ::schemes::{MobileScheme, Scheme, window};

impl Plan {
    /// The base station of this plan.
    pub fn base_station(&self) -> Scheme {
        match (self.stack().station, self.window) {
            (Scheme::Window(agent), Some(window)) => {
                // Whether mobile hosts register is not the scheme's to say.
                let unregistered = agent.config().unregistered;
                let config = window::station::Config { unregistered, ..window.station };
                Scheme::Window(Box::new(window::station::Agent::new(config)))
            }
            (station, _) => station,
        }
    }

    /// What stands between a mobile host's TCP and the air.
    pub fn mobile_scheme(&self) -> Option<MobileScheme> {
        let mobile = self.stack().mobile?;
        let other = match mobile {
            MobileScheme::FastRetransmit(_) => self.fast_retransmit.map(MobileScheme::from),
            MobileScheme::Window(_) => self.window.map(|window| window.mobile.into()),
        };
        Some(other.unwrap_or(mobile))
    }

    fn stack(&self) -> Stack {
        let stack = stack(&self.scheme)
            .unwrap_or_else(|_| unreachable!("Plan::new refuses unknown schemes"));
        if self.roaming.is_some() { stack } else { stack.without_handoffs() }
    }
}
