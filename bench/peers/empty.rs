//! Empty: cargo wants a target; the dependencies are what is used.
