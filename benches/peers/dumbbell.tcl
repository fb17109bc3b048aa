# The dumbbell of the benches in ns-2.35 (command `ns`).
#
#   ns dumbbell.tcl KEY=VALUE ...
#
# The keys and their meanings are those of benches/scene.py. Prints one JSON object on one line; counts and
# processor time cover the simulated time from mark_s to the end (the key `seconds`), so set-up is excluded.
# With count=1, a monitor at each end of the bottleneck counts packet-hops and drops; timed runs have no
# monitors but send the same packets.
#
# Differences from the other programs: one-way agents (no handshake, no FIN); the retransmission timer counts in
# ticks of 10 ms; for DropTail, ns-2's buffer includes the packet in transmission.

foreach argument $argv {
    if {![regexp {^(\w+)=(.*)$} $argument -> key value]} { puts stderr "`$argument' is not KEY=VALUE"; exit 2 }
    set scene($key) $value
}
set count [expr {[info exists scene(count)] && $scene(count)}]
set flows $scene(flows)
set header 40
set unlimited 10000000

Queue/RED set bytes_           false
Queue/RED set queue_in_bytes_  false
Queue/RED set gentle_          true
Queue/RED set adaptive_        0
Queue/RED set setbit_          false
Queue/RED set wait_            false
Queue/RED set thresh_          $scene(min_th)
Queue/RED set maxthresh_       $scene(max_th)
Queue/RED set linterm_         [expr {1.0 / $scene(max_p)}]
Queue/RED set q_weight_        $scene(w_q)
Queue/RED set mean_pktsize_    [expr {$scene(mss) + $header}]

Agent/TCP set packetSize_          $scene(mss)
Agent/TCP set tcpip_base_hdr_size_ $header
Agent/TCP set useHeaders_          true
Agent/TCP set window_              1000000
Agent/TCP set windowInit_          2
Agent/TCP set singledup_           0
Agent/TCP set minrto_              [expr {$scene(min_rto_ms) / 1000.0}]

set ns [new Simulator]
# Packets without the headers that are not used here: the smallest and fastest that ns-2 offers.
remove-all-packet-headers
add-packet-header IP TCP Flags

# setup=standard computes shortest paths between all pairs of nodes; setup=linear gives every node a default
# route.
if {$scene(setup) eq "linear"} { $ns rtproto Manual }

set left  [$ns node]
set right [$ns node]
set discipline [expr {$scene(discipline) eq "red" ? "RED" : "DropTail"}]
set delay_s [expr {$scene(delay_ms) / 1000.0}]
set rate [expr {$scene(rate_mbit) * 1e6}]
set access [expr {$scene(access_mbit) * 1e6}]
$ns simplex-link $left $right $rate $delay_s $discipline
$ns simplex-link $right $left $rate $delay_s DropTail
$ns queue-limit $left $right $scene(limit)
$ns queue-limit $right $left $unlimited
if {$count} {
    set there [$ns monitor-queue $left $right ""]
    set back  [$ns monitor-queue $right $left ""]
}

# Value i of n, evenly spread from low to high.
proc spread {low high i n} { return [expr {$n == 1 ? $low : $low + ($high - $low) * double($i) / ($n - 1)}] }

proc attach {ns router host access delay_s} {
    global unlimited
    $ns duplex-link $router $host $access $delay_s DropTail
    $ns queue-limit $router $host $unlimited
    $ns queue-limit $host $router $unlimited
}

proc default_route {ns node next} {
    [$node get-module "Manual"] add-route-to-adj-node -default $next
}

for {set i 0} {$i < $flows} {incr i} {
    set rtt_s [expr {[spread $scene(rtt_low_ms) $scene(rtt_high_ms) $i $flows] / 1000.0}]
    set access_delay_s [expr {($rtt_s / 2 - $delay_s) / 2}]
    set sender   [$ns node]
    set receiver [$ns node]
    attach $ns $left $sender $access $access_delay_s
    attach $ns $right $receiver $access $access_delay_s
    if {$scene(setup) eq "linear"} {
        default_route $ns $sender $left
        default_route $ns $receiver $right
        [$left get-module "Manual"] add-route-to-adj-node $sender
        [$right get-module "Manual"] add-route-to-adj-node $receiver
    }
    set tcp($i)  [new Agent/TCP/Newreno]
    set sink($i) [new Agent/TCPSink]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [spread 0 $scene(start_s) $i $flows] "$ftp start"
}
if {$scene(setup) eq "linear"} {
    default_route $ns $left $right
    default_route $ns $right $left
}

# Processor time of this process (Linux).
proc cpu_s {} {
    set file [open /proc/self/schedstat]
    set ns [lindex [read $file] 0]
    close $file
    return [expr {$ns / 1e9}]
}

# Packet-hops, payload bytes delivered in order, drops.
proc counts {} {
    global flows sink count there back scene header
    set bytes 0
    for {set i 0} {$i < $flows} {incr i} { incr bytes [$sink($i) set bytes_] }
    set delivered [expr {$bytes / ($scene(mss) + $header)}]  ;# the sink counts headers, too
    if {!$count} { return [list 0 $delivered 0] }
    set hops [expr {[$there set parrivals_] + 2 * [$there set pdepartures_]
                    + [$back set parrivals_] + 2 * [$back set pdepartures_]}]
    return [list $hops $delivered [$there set pdrops_]]
}

proc mark {} {
    global before cpu_before
    set before [counts]
    set cpu_before [cpu_s]
}

proc report {} {
    global before cpu_before setup_cpu_s count
    set cpu [expr {[cpu_s] - $cpu_before}]
    foreach name {hops delivered dropped} was $before is [counts] { set $name [expr {$is - $was}] }
    if {!$count} { set hops null; set dropped null }
    puts "{\"packet_hops\":$hops,\"delivered\":$delivered,\"dropped\":$dropped,\"cpu_s\":$cpu,\"setup_cpu_s\":$setup_cpu_s}"
    exit 0
}

proc begin {} {
    global setup_cpu_s
    set setup_cpu_s [cpu_s]
}

$ns at 0 begin
$ns at $scene(mark_s) mark
$ns at $scene(seconds) report
$ns run
