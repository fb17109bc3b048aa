//! The keys of an experiment's arms, sweep and claims.

use aqmlab_params::{Default, Kind};

use crate::field::{Field, Form, default, required, ruled};

/// The keys of an `[[arm]]` in addition to the dotted paths.
pub const ARM: &[Field] = &[required("name", Form::One(Kind::Text), "the arm's name in tables and plots")];

/// The keys of a `[[sweep.zip]]` in addition to the dotted paths.
pub const ZIP: &[Field] = &[
    required("name", Form::One(Kind::Text), "the axis' name"),
    ruled("labels", Form::Names("values"), "the values of the first path", "labels of the values"),
];

/// The keys of a `[[sweep.case]]` in addition to the dotted paths.
pub const CASE: &[Field] = &[required("name", Form::One(Kind::Text), "the case's name")];

/// What the keys of a `[[sweep.exclude]]` are; it has no keys of its own.
pub const EXCLUDE: &str = "Each key is an axis, with a label or a list of labels. A case is left out if it has one of the labels on each axis \
     that the rule names.";

/// The keys of a `[[claim]]`.
pub const CLAIM: &[Field] = &[
    required("name", Form::One(Kind::Text), "the claim's name"),
    ruled("text", Form::One(Kind::Text), "empty", "the claim in words"),
    required("expect", Form::One(Kind::Text), "the claim as an expression over metrics, arms and axes"),
    ruled(
        "where",
        Form::Labels,
        "every axis is named in the expression",
        "labels that apply to the whole expression, each for an axis, `arm`, `queue` or `class`",
    ),
    default(
        "strength",
        Form::One(Kind::Choice(&["firm", "soft"])),
        Default::Choice("firm"),
        "a firm claim that fails makes the command fail",
    ),
    ruled("source", Form::One(Kind::Text), "empty", "the source of the claim"),
];
