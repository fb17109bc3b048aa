# One slow RED link of ns-2.35 under an open load: UDP datagrams arrive at Poisson instants, and nothing reacts to a
# drop.
#
#   ns open_loop_red.tcl LOAD ON_S OFF_S WAIT LIMIT SEED ARRIVALS
#
# LOAD is the offered load during on periods (1 = the link's rate). Arrivals are on for ON_S seconds and off for OFF_S
# seconds, alternately (OFF_S 0: always on). WAIT is RED's wait_ (0 or 1), LIMIT its limit_. Arrival instants are whole
# nanoseconds.
#
# Prints one line per arrival, `A arrival_ns waiting avg prob fate`, then one line `U value` per uniform draw of RED's
# generator, in order: RED takes a draw at an arrival only when it needs one. `waiting` is the queue before the arrival,
# without the packet in transmission; `avg` and `prob` (before spacing) are RED's values after the arrival; fate is
# admitted, early or full.

if {$argc != 7} {
    puts stderr "usage: ns open_loop_red.tcl LOAD ON_S OFF_S WAIT LIMIT SEED ARRIVALS"
    exit 2
}
lassign $argv load on_s off_s wait limit seed arrivals

set link_bps    1e6
set delay_s     0.001
set wire_bytes  1000    ;# ns-2's UDP adds no header
set tcl_precision 17

Queue/RED set bytes_          false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_         true
Queue/RED set adaptive_       0
Queue/RED set setbit_         false
Queue/RED set wait_           [expr {$wait ? "true" : "false"}]
Queue/RED set thresh_         5
Queue/RED set maxthresh_      15
Queue/RED set linterm_        10
Queue/RED set q_weight_       0.02
Queue/RED set mean_pktsize_   $wire_bytes
Agent/UDP set packetSize_     $wire_bytes

# RED draws from the default generator; a second generator with the same seed repeats its sequence.
$defaultRNG seed $seed
set twin [new RNG]
$twin seed $seed
set clock_stream [new RNG]
$clock_stream seed [expr {$seed + 1}]

set ns [new Simulator]
set near [$ns node]
set far  [$ns node]
$ns simplex-link $near $far $link_bps $delay_s RED
$ns simplex-link $far $near $link_bps $delay_s DropTail
$ns queue-limit $near $far $limit
set link  [$ns link $near $far]
set queue [$link queue]
set monitor [new QueueMonitor/ED]
$link attach-monitors [new SnoopQueue/In] [new SnoopQueue/Out] [new SnoopQueue/Drop] $monitor
set early [new SnoopQueue/EDrop]
$early set-monitor $monitor
$early target [$ns set nullAgent_]
$queue early-drop-target $early

set source [new Agent/UDP]
$ns attach-agent $near $source
set drain [new Agent/Null]
$ns attach-agent $far $drain
$ns connect $source $drain

proc arrive {at_ns} {
    global source queue monitor
    set waiting [$monitor set pkts_]
    set early   [$monitor set epdrops_]
    set lost    [$monitor set pdrops_]
    $source send [Agent/UDP set packetSize_]
    set fate admitted
    if {[$monitor set epdrops_] > $early} {
        set fate early
    } elseif {[$monitor set pdrops_] > $lost} {
        set fate full
    }
    puts "A $at_ns $waiting [$queue set ave_] [$queue set prob1_] $fate"
}

set per_second [expr {$load * $link_bps / (8.0 * $wire_bytes)}]
set busy_s 0.0  ;# the clock that runs only while arrivals are on
for {set i 0} {$i < $arrivals} {incr i} {
    set busy_s [expr {$busy_s - log(1.0 - [$clock_stream uniform 0 1]) / $per_second}]
    set pauses [expr {$off_s > 0 ? int($busy_s / $on_s) : 0}]
    set at_ns  [expr {round(($busy_s + $pauses * $off_s) * 1e9)}]
    $ns at [format %d.%09d [expr {$at_ns / 1000000000}] [expr {$at_ns % 1000000000}]] "arrive $at_ns"
}
proc finish {} {
    global twin arrivals
    for {set i 0} {$i < $arrivals} {incr i} { puts "U [$twin uniform 0 1]" }
    exit 0
}
$ns at [expr {$at_ns / 1e9 + 10.0}] finish
$ns run
