//! The form in which plans contain the traffic of a class.

/// Defines `Json`, the parameters of a kind of traffic as plain data, with a row per key: its type, and its value,
/// given the parameters. The documentation of a row is that of the key in the schema of plans.
macro_rules! plain {
    ($kind:ident, $of:ident => { $($(#[$attribute:meta])* $visible:vis $key:ident: $type:ty = $value:expr,)* }) => {
        #[doc = concat!("The parameters of [`", stringify!($kind), "`] as plain data.")]
        #[derive(Clone, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct Json {
            $($(#[$attribute])* $visible $key: $type,)*
        }

        impl $kind {
            pub(super) fn json(&self) -> Json {
                let $of = self;
                Json { $($key: $value,)* }
            }
        }
    };
}

pub(super) use plain;
