//! The built-in disciplines: a single list, from which the enum, the catalogue and the builders are
//! generated.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_params::ParamError;
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate};

use crate::disc::{
    self, Avq, Blue, BuildInner, Cake, Choke, Classes, Cobalt, Codel, DropTail, DualPi2, Fq, FqCodel, FqPie,
    Fred, Gred, Htb, Pi, Pi2, Pie, Policer, Red, RedPd, Rem, Sfb, Sfq, Spare, Tbf,
};
use crate::info::{Catalogue, Effective, Info};
use crate::{Arrived, Backlog, Inside, LawSamples, Observer, Packet, Qdisc};

/// Makes a built-in discipline from its parameters and its own stream of draws. The last argument makes the
/// disciplines inside it.
pub(crate) type Builder<P> =
    fn(&Effective, Stream, BuildInner<'_, Discipline<P>>) -> Result<Discipline<P>, ParamError>;

/// Generates the enum, its dispatch, the catalogue and the builders from the list of built-in
/// disciplines. The builders after `containing` also receive the function that makes inner disciplines. `$d` is a
/// dollar sign, for the inner macro.
macro_rules! disciplines {
    ($d:tt
        $($(#[$doc:meta])* $variant:ident($queue:ty) { $($info:expr => $build:expr),+ $(,)? })+
        ; containing $($(#[$outer_doc:meta])* $outer:ident($outer_queue:ty) { $outer_info:expr => $outer_build:expr })+
    ) => {
        /// Any discipline. Built-in disciplines are dispatched by `match`, so a port's hot path has no
        /// indirect call and no box; [`Discipline::Custom`] holds a user-defined one.
        // A separate tag is quicker to test than one hidden in a field of the largest variant.
        #[repr(u8)]
        #[non_exhaustive]
        #[allow(
            clippy::large_enum_variant,
            reason = "one per port, on the hot path: a box would cost one indirection per packet"
        )]
        pub enum Discipline<P: Packet> {
            $($(#[$doc])* $variant($queue),)+
            $($(#[$outer_doc])* $outer($outer_queue),)+
            /// Any other discipline.
            Custom(Box<dyn Qdisc<P> + Send>),
        }

        /// Makes the call `$call` on the discipline inside the enum, through the concrete type of that
        /// discipline.
        macro_rules! each_discipline {
            ($d discipline:expr, $d inner:ident => $d call:expr) => {
                match $d discipline {
                    $(Discipline::$variant($d inner) => $d call,)+
                    $(Discipline::$outer($d inner) => $d call,)+
                    Discipline::Custom($d inner) => $d call,
                }
            };
        }

        /// Returns the built-in disciplines.
        pub fn catalogue() -> &'static Catalogue {
            static ALL: Catalogue = Catalogue::of(&[$($($info),+),+, $($outer_info),+]);
            &ALL
        }

        /// Returns the builders of all entries in the [`catalogue`], in the same order.
        pub(crate) fn builders<P: Arrived>() -> impl Iterator<Item = (Info, Builder<P>)> {
            let builders: Vec<Builder<P>> = alloc::vec![
                $($(|s, draws, _| Ok(Discipline::$variant($build(s, draws)?))),+),+,
                $(|s, draws, inner| Ok(Discipline::$outer($outer_build(s, draws, inner)?))),+
            ];
            catalogue().iter().copied().zip(builders)
        }
    };
}

// One entry per queue type, with the disciplines that use it: the description and the builder of each.
disciplines! { $
    /// [`DropTail`]
    DropTail(DropTail<P>) { disc::DROPTAIL_INFO => disc::build_droptail }
    /// [`Red`], with a fixed or an adaptive law
    Red(Red<P>) {
        disc::RED_INFO => disc::build_red,
        disc::ARED_INFO => disc::build_ared,
        disc::SCRED_INFO => disc::build_scred,
    }
    /// [`Pi`]
    Pi(Pi<P>) { disc::PI_INFO => disc::build_pi }
    /// [`Pie`]
    Pie(Pie<P>) { disc::PIE_INFO => disc::build_pie }
    /// [`Rem`]
    Rem(Rem<P>) { disc::REM_INFO => disc::build_rem }
    /// [`Blue`]
    Blue(Blue<P>) { disc::BLUE_INFO => disc::build_blue }
    /// [`Avq`]
    Avq(Avq<P>) { disc::AVQ_INFO => disc::build_avq }
    /// [`Fred`]
    Fred(Fred<P>) { disc::FRED_INFO => disc::build_fred }
    /// [`Gred`]
    Gred(Gred<P>) { disc::GRED_INFO => disc::build_gred }
    /// [`Choke`]
    Choke(Choke<P>) { disc::CHOKE_INFO => disc::build_choke }
    /// [`Sfb`]
    Sfb(Sfb<P>) { disc::SFB_INFO => disc::build_sfb }
    /// [`RedPd`]
    RedPd(RedPd<P>) { disc::RED_PD_INFO => disc::build_red_pd }
    /// [`Sfq`]
    Sfq(Sfq<P>) { disc::SFQ_INFO => disc::build_sfq }
    /// [`Fq`]
    Fq(Fq<P>) { disc::FQ_INFO => disc::build_fq }
    /// [`Codel`]
    Codel(Codel<P>) { disc::CODEL_INFO => disc::build_codel }
    /// [`FqCodel`]
    FqCodel(FqCodel<P>) { disc::FQ_CODEL_INFO => disc::build_fq_codel }
    /// [`FqPie`]
    FqPie(FqPie<P>) { disc::FQ_PIE_INFO => disc::build_fq_pie }
    /// [`Cobalt`]
    Cobalt(Cobalt<P>) { disc::COBALT_INFO => disc::build_cobalt }
    /// [`Cake`]
    Cake(Cake<P>) { disc::CAKE_INFO => disc::build_cake }
    /// [`Pi2`]
    Pi2(Pi2<P>) { disc::PI2_INFO => disc::build_pi2 }
    /// [`DualPi2`]
    DualPi2(DualPi2<P>) { disc::DUALPI2_INFO => disc::build_dualpi2 }
    ; containing
    /// [`Classes`]
    Classes(Classes<P, Discipline<P>>) { disc::CLASSES_INFO => disc::build_classes }
    /// [`Policer`]
    Policer(Policer<Box<Discipline<P>>>) { disc::POLICER_INFO => disc::build_policer }
    /// [`Spare`]
    Spare(Spare<Box<Discipline<P>>>) { disc::SPARE_INFO => disc::build_spare }
    /// [`Tbf`]
    Tbf(Tbf<P, Box<Discipline<P>>>) { disc::TBF_INFO => disc::build_tbf }
    /// [`Htb`]
    Htb(Htb<P, Discipline<P>>) { disc::HTB_INFO => disc::build_htb }
}

pub(crate) use each_discipline as each;

impl<P: Arrived> Qdisc<P> for Discipline<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        each!(self, d => d.enqueue(now, pkt, obs))
    }
    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        each!(self, d => d.enqueue_spared(now, pkt, obs));
    }
    #[inline(always)]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        each!(self, d => d.dequeue(now, obs))
    }
    #[inline]
    fn deadline(&self) -> Option<Instant> {
        each!(self, d => d.deadline())
    }
    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        each!(self, d => d.rate_changed(now, rate))
    }
    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        each!(self, d => d.shape(now, rate))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, d => d.backlog())
    }
    fn next_len(&mut self) -> Option<Bytes> {
        each!(self, d => d.next_len())
    }
    fn settles_at_enqueue(&self) -> bool {
        each!(self, d => d.settles_at_enqueue())
    }
    #[inline]
    fn passes_at_once(&self, size: Bytes) -> bool {
        each!(self, d => d.passes_at_once(size))
    }
    fn holds_back(&self) -> bool {
        each!(self, d => d.holds_back())
    }
    fn reserve(&mut self, packets: usize, flows: usize) {
        each!(self, d => d.reserve(packets, flows));
    }
    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        each!(self, d => d.each_inner(visit))
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        each!(self, d => d.observe(now, out))
    }
}

/// A boxed discipline is itself a discipline.
impl<P: Packet, Q: Qdisc<P> + ?Sized> Qdisc<P> for Box<Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        (**self).enqueue(now, pkt, obs);
    }
    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        (**self).enqueue_spared(now, pkt, obs);
    }
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        (**self).dequeue(now, obs)
    }
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        (**self).rate_changed(now, rate);
    }
    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        (**self).shape(now, rate)
    }
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn next_len(&mut self) -> Option<Bytes> {
        (**self).next_len()
    }
    fn settles_at_enqueue(&self) -> bool {
        (**self).settles_at_enqueue()
    }
    fn passes_at_once(&self, size: Bytes) -> bool {
        (**self).passes_at_once(size)
    }
    fn holds_back(&self) -> bool {
        (**self).holds_back()
    }
    fn reserve(&mut self, packets: usize, flows: usize) {
        (**self).reserve(packets, flows);
    }
    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        (**self).each_inner(visit);
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        (**self).observe(now, out);
    }
}
