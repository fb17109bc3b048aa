# TFRC flows, alone and with TCP, over one bottleneck in ns-2.35 (command `ns`).
#
#   ns tfrc.tcl CASE SEED
#
# CASE is DISCIPLINE-TFRC-TCP: the discipline of the bottleneck (droptail, red), and the numbers of TFRC and TCP flows, as in
# droptail-1-0 or red-4-4. Prints a line of CSV: case, seed, bits per second of all TFRC flows and of all TCP flows that
# arrived from 50 s to 150 s, headers included, and the percentage of packets that the bottleneck dropped.
# ../../vectors/ns2-tfrc/README.md explains the settings.

lassign $argv case seed
lassign [split $case -] discipline tfrcs tcps
set bottleneck_bps 5e6
set from_s 50.0
set until_s 150.0

ns-random $seed
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
switch -exact -- $discipline {
    droptail { set name DropTail }
    red {
        set name RED
        Queue/RED set gentle_ true
        Queue/RED set thresh_ 10
        Queue/RED set maxthresh_ 30
        Queue/RED set q_weight_ 0.002
        Queue/RED set linterm_ 10
        Queue/RED set bytes_ false
        Queue/RED set queue_in_bytes_ false
    }
}
$ns duplex-link $left $right $bottleneck_bps 10ms $name
$ns queue-limit $left $right 100
$ns queue-limit $right $left 100000

# History discounting (RFC 5348, section 5.5) is off; the other settings are the RFC's.
Agent/TFRC set packetSize_ 1000
Agent/TFRC set SndrType_ 0
Agent/TFRC set oldCode_ false
Agent/TFRC set ca_ 0
Agent/TFRCSink set discount_ 0
Agent/TCP set window_ 1000
Agent/TCP set packetSize_ 960
Agent/TCP set overhead_ 0.0016

set random [new RNG]
$random seed $seed
proc ends {} {
    global ns left right
    set a [$ns node]
    set b [$ns node]
    foreach {node router} [list $a $left $b $right] {
        $ns duplex-link $node $router 100e6 10ms DropTail
        $ns queue-limit $node $router 100000
        $ns queue-limit $router $node 100000
    }
    return [list $a $b]
}
set monitors {}
for {set i 0} {$i < $tfrcs + $tcps} {incr i} {
    lassign [ends] a b
    if {$i < $tfrcs} {
        set source [new Agent/TFRC]
        set sink [new Agent/TFRCSink]
    } else {
        set source [new Agent/TCP/Sack1]
        set sink [new Agent/TCPSink/Sack1]
    }
    $source set fid_ $i
    $ns attach-agent $a $source
    $ns attach-agent $b $sink
    $ns connect $source $sink
    set start_s [$random uniform 0 5]
    if {$i < $tfrcs} {
        $ns at $start_s "$source start"
    } else {
        set ftp [new Application/FTP]
        $ftp attach-agent $source
        $ns at $start_s "$ftp start"
    }
}
set flows [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $flows
proc bytes {} {
    global flows tfrcs
    set sums {0 0}
    foreach flow [$flows flows] {
        set place [expr {[$flow set flowid_] >= $tfrcs}]
        lset sums $place [expr {[lindex $sums $place] + [$flow set bdepartures_]}]
    }
    return $sums
}
proc begin {} {
    global first arrivals drops flows
    set first [bytes]
    set arrivals [$flows set parrivals_]
    set drops [$flows set pdrops_]
}
proc finish {} {
    global first arrivals drops flows case seed from_s until_s
    set rates {}
    foreach before $first after [bytes] {
        lappend rates [format %.0f [expr {8.0 * ($after - $before) / ($until_s - $from_s)}]]
    }
    set lost [expr {100.0 * ([$flows set pdrops_] - $drops) / ([$flows set parrivals_] - $arrivals)}]
    puts "$case,$seed,[join $rates ,],[format %.4f $lost]"
    exit 0
}
$ns at $from_s begin
$ns at $until_s finish
$ns run
