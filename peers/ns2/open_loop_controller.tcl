# One slow link of ns-2.35 with a PI or REM queue under an open load: packets arrive at given instants, and nothing
# reacts to a drop or a mark.
#
#   ns open_loop_controller.tcl PI|REM LIMIT SEED ARRIVALS_FILE [NAME VALUE]..
#
# Each line of ARRIVALS_FILE is `at_ns size ect`; each pair NAME VALUE sets a variable of the queue (`w_ 160`).
# ECN-capable packets come from a TCP sender with an unlimited window that never receives an acknowledgment; the others
# come from UDP.
#
# Prints one line per arrival, `A at_ns packets bytes prob lost`: `packets` and `bytes` are the queue before the
# arrival, not counting the packet in transmission; `prob` and `lost` are the probability and the number of packets lost
# so far, both after the arrival. Then prints `R flags` for each packet that came through, in order, and `U value` for
# each uniform draw of the queue's generator.

if {$argc < 4 || $argc % 2} {
    puts stderr "usage: ns open_loop_controller.tcl PI|REM LIMIT SEED ARRIVALS_FILE \[NAME VALUE\].."
    exit 2
}
lassign $argv kind limit seed arrivals_file
set tcl_precision 17
foreach {name value} [lrange $argv 4 end] { Queue/$kind set $name $value }

Agent/TCP set useHeaders_ false
Agent/TCP set ecn_ 1
Agent/TCP set syn_ false
Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 1000000
Agent/TCP set minrto_ 1e8
Agent/TCP set maxrto_ 1e9
Agent/TCP set rtxcur_init_ 1e8

# The queue draws from the default generator; a second generator with the same seed repeats its sequence.
set twin [new RNG]
$twin seed $seed

set ns [new Simulator]
set traced [open $arrivals_file.tr w]
$ns trace-all $traced
set near [$ns node]
set far  [$ns node]
$ns simplex-link $near $far 1e6 0.001 $kind
$ns simplex-link $far $near 1e6 0.001 DropTail
$ns queue-limit $near $far $limit
set queue [[$ns link $near $far] queue]
set monitor [$ns monitor-queue $near $far ""]

set udp [new Agent/UDP]
set tcp [new Agent/TCP]
foreach source [list $udp $tcp] {
    set drain [new Agent/Null]
    $ns attach-agent $near $source
    $ns attach-agent $far $drain
    $ns connect $source $drain
}
$udp set packetSize_ 100000

proc arrive {at_ns size ect} {
    global udp tcp queue monitor
    set packets [$monitor set pkts_]
    set bytes   [$monitor set size_]
    if {$ect} {
        $tcp set packetSize_ $size
        $tcp advanceby 1
    } else {
        $udp send $size
    }
    puts "A $at_ns $packets $bytes [$queue set prob_] [$monitor set pdrops_]"
}

# The generator is seeded only now, because creating agents and routes also takes draws.
$ns at 0.0 "$defaultRNG seed $seed"

set arrivals 0
set file [open $arrivals_file]
while {[gets $file line] >= 0} {
    lassign $line at_ns size ect
    $ns at [format %d.%09d [expr {$at_ns / 1000000000}] [expr {$at_ns % 1000000000}]] "arrive $at_ns $size $ect"
    incr arrivals
}
proc finish {} {
    global ns traced arrivals_file twin arrivals
    $ns flush-trace
    close $traced
    set file [open $arrivals_file.tr]
    while {[gets $file line] >= 0} {
        if {[lindex $line 0] eq "r"} { puts "R [lindex $line 6]" }
    }
    # The queue takes at most one draw per arrival, or two per departure.
    for {set i 0} {$i < 3 * $arrivals} {incr i} { puts "U [$twin uniform 0 1]" }
    exit 0
}
$ns at [expr {$at_ns / 1e9 + 10.0}] finish
$ns run
