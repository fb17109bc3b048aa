# One RED-PD link of ns-2.35 under an open load of 1000-byte UDP datagrams from sixty flows at Poisson instants, with
# the scripts of RED-PD's authors (helper.tcl and monitoring.tcl of ns-2.35's tcl/ex/red-pd) in control.
#
#   ns red_pd.tcl SCRIPTS SEED ARRIVALS
#
# Prints one line per arrival, `A arrival_ns flow p avg fate` (p: the filter's probability for the flow before
# the arrival, fate: admitted, filter, early or full); one line after each reduction of probabilities,
# `R time_ns`, followed by each monitored flow with its probability and whether it counts as unresponsive;
# then the generator's draws, `U value`.

lassign $argv scripts seed arrivals
set tcl_precision 17
foreach {name value} {testIdent_ 0 verbosity_ -1 listMode_ multi target_rtt_ 0.040 unresponsive_test_ 1} {
    set $name $value
}
source $scripts/monitoring.tcl
source $scripts/helper.tcl
foreach {name value} {bytes_ false queue_in_bytes_ false gentle_ true thresh_ 5 maxthresh_ 15 linterm_ 10 q_weight_ 0.02
                      mean_pktsize_ 1000 wait_ false} {
    Queue/RED set $name $value
}
# A packet that the filter drops on an idle link makes ns-2 forget how long RED has been idle, so the filter is set
# to drop no packets while the link is idle.
Queue/RED/PD set noidle_ true
Agent/UDP set packetSize_ 1000

# RED draws from the default generator. A second generator with the same seed gives the same sequence.
$defaultRNG seed $seed
set twin [new RNG]
$twin seed $seed
set gaps [new RNG]
$gaps seed [expr {$seed + 1}]

set ns [new Simulator]
set near [$ns node]
set far  [$ns node]
$ns simplex-link $near $far 4e6 0.001 RED/PD
$ns simplex-link $far $near 4e6 0.001 DropTail
$ns queue-limit $near $far 30
set link  [$ns link $near $far]
set queue [$link queue]
set flowmon [$queue makeflowmon $link]

set drain [new Agent/Null]
$ns attach-agent $far $drain
for {set flow 0} {$flow < 60} {incr flow} {
    set source($flow) [new Agent/UDP]
    $source($flow) set fid_ $flow
    $ns attach-agent $near $source($flow)
    $ns connect $source($flow) $drain
}

# The output of the scripts themselves is discarded.
Class Shown -superclass REDPDSim
# The time since a flow's last change is often exactly equal to the sum with which it is compared. Rounding must not
# decide the comparison.
Shown instproc minLastChange {intervals} {
    return [expr {[$self next $intervals] - 1e-6}]
}
Shown instproc do_reward {} {
    $self next
    global ns flowmon
    set line "R [expr {round([$ns now] * 1e9)}]"
    foreach flow [$flowmon flows] {
        if {[$flow set monitored_]} {
            append line " [$flow set flowid_] [expr {1.0 - [$flow set targetBW_]}] [$flow set unresponsive_]"
        }
    }
    puts $line
}

proc probability {fid} {
    global flowmon
    foreach flow [$flowmon flows] {
        if {[$flow set flowid_] == $fid && [$flow set monitored_]} { return [expr {1.0 - [$flow set targetBW_]}] }
    }
    return 0
}

proc arrive {at_ns fid} {
    global source queue flowmon
    set p [probability $fid]
    foreach name {mon_epdrops_ epdrops_ pdrops_} { set before($name) [$flowmon set $name] }
    $source($fid) send 1000
    set fate admitted
    if {[$flowmon set mon_epdrops_] > $before(mon_epdrops_)} {
        set fate filter
    } elseif {[$flowmon set epdrops_] > $before(epdrops_)} {
        set fate early
    } elseif {[$flowmon set pdrops_] > $before(pdrops_)} {
        set fate full
    }
    puts "A $at_ns $fid $p [$queue set ave_] $fate"
}

# Flow 0 sends 40 % of all packets, but only 4 % in the last third; flow 1 sends 20 %, flow 2 sends 10 %, and the others
# share the rest. (ns-2 keeps a flow's count of packets when it releases the flow, so the load must not cause any flow
# to be released and monitored again.)
set at_s 9.0
for {set i 0} {$i < $arrivals} {incr i} {
    set at_s  [expr {$at_s - log(1.0 - [$gaps uniform 0 1]) / 700.0}]
    set at_ns [expr {round($at_s * 1e9)}]
    set share [expr {$i < 2 * $arrivals / 3 ? 0.4 : 0.04}]
    set u [$gaps uniform 0 1]
    set flow [expr {$u < $share ? 0 : $u < $share + 0.2 ? 1 : $u < $share + 0.3 ? 2
                    : 3 + int(57 * ($u - $share - 0.3) / (0.7 - $share))}]
    $ns at [format %d.%09d [expr {$at_ns / 1000000000}] [expr {$at_ns % 1000000000}]] "arrive $at_ns $flow"
}
set control [new Shown $ns $queue $flowmon $link 0 true]
proc finish {} {
    global twin arrivals
    for {set i 0} {$i < 2 * $arrivals} {incr i} { puts "U [$twin uniform 0 1]" }
    exit 0
}
$ns at [expr {$at_ns / 1e9 + 3.0}] finish
$ns run
