# Two TCP flows, one NewReno and one SACK, and a UDP flow over one bottleneck, measured by ns-2.35 (command `ns`): the
# network of papers/miskovic/net10.toml.
#
#   ns net10.tcl ARM LIMIT SEED END_S
#
# ARM is DropTail, DropTail-jitter (each TCP packet is sent up to 10 us later), RED10 or RED2 (gentle RED, max_p 0.1 or
# 0.02) or ARED (Adaptive RED); LIMIT is the bottleneck's `limit_`. Prints one JSON object on one line, with counts from 0 to END_S.
# ../../vectors/ns2-net10/README.md explains every value.

if {$argc != 4} {
    puts stderr "usage: ns net10.tcl ARM LIMIT SEED END_S"
    exit 2
}
lassign $argv arm limit seed end_s

# ---- the scene: all its numbers are here -------------------------------------------------------------------------

set rate_bps       1.5e6
set delay_s        0.040
set access_bps     10e6
set start_span_s   1.0
set reverse_limit  1000
set lossless_limit 100000 ;# packets; the buffers of access links
set payload_bytes  1460
set wire_bytes     1500
set udp_bps        150e3
set udp_bytes      210 ;# ns-2's UDP adds no header: this is the size on the wire

set jitter_s       0

switch -exact -- $arm {
    DropTail { set kind DropTail; set max_p 0; set adaptive 0 }
    DropTail-jitter { set kind DropTail; set max_p 0; set adaptive 0; set jitter_s 1e-5 }
    RED10    { set kind RED; set max_p 0.1; set adaptive 0 }
    RED2     { set kind RED; set max_p 0.02; set adaptive 0 }
    ARED     { set kind RED; set max_p 0.1; set adaptive 1 }
    default  { puts stderr "net10.tcl: $arm: expected DropTail, DropTail-jitter, RED10, RED2 or ARED"; exit 2 }
}

Queue/DropTail set queue_in_bytes_ false
Queue/DropTail set drop_front_     false
if {$kind eq "RED"} {
    foreach {name value} [list bytes_ false queue_in_bytes_ false gentle_ true wait_ true setbit_ false \
            thresh_ [expr {$limit / 4.0}] maxthresh_ [expr {$limit * 3 / 4.0}] linterm_ [expr {1 / $max_p}] \
            q_weight_ 0.002 mean_pktsize_ 500 adaptive_ $adaptive bottom_ 0.01 top_ 0.5] {
        Queue/RED set $name $value
    }
}

Agent/TCP set packetSize_          $payload_bytes
Agent/TCP set tcpip_base_hdr_size_ [expr {$wire_bytes - $payload_bytes}]
Agent/TCP set useHeaders_          true
Agent/TCP set window_              20
Agent/TCP set minrto_              1
Agent/TCP set rtxcur_init_         6
Agent/TCP set overhead_            $jitter_s

# ---- randomness: two streams of MRG32k3a, each advanced to its SEED-th substream ---------------------------------

set start_stream [new RNG]
foreach stream [list $defaultRNG $start_stream] {
    for {set i 0} {$i < $seed} {incr i} { $stream next-substream }
}

# ---- the network -------------------------------------------------------------------------------------------------

set ns [new Simulator]
set left  [$ns node]
set right [$ns node]
$ns simplex-link $left $right $rate_bps $delay_s $kind
$ns simplex-link $right $left $rate_bps $delay_s DropTail
$ns queue-limit $left $right $limit
$ns queue-limit $right $left $reverse_limit
set monitor [$ns monitor-queue $left $right ""]
set back    [$ns monitor-queue $right $left ""]

# Connects a source and a sink by links of their own to the two routers.
proc attach {source sink} {
    global ns left right access_bps lossless_limit
    set from [$ns node]
    set to   [$ns node]
    foreach {a b} [list $from $left $right $to] {
        $ns duplex-link $a $b $access_bps 0 DropTail
        $ns queue-limit $a $b $lossless_limit
        $ns queue-limit $b $a $lossless_limit
    }
    $ns attach-agent $from $source
    $ns attach-agent $to $sink
    $ns connect $source $sink
}

foreach {name agent sink_type} {newreno Newreno TCPSink sack Sack1 TCPSink/Sack1} {
    set tcp($name)  [new Agent/TCP/$agent]
    set sink($name) [new Agent/$sink_type]
    attach $tcp($name) $sink($name)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($name)
    # Whole nanoseconds, so that another simulator can be given exactly the same start.
    set start($name) [format %.9f [$start_stream uniform 0 $start_span_s]]
    $ns at $start($name) "$ftp start"
}
set udp [new Agent/UDP]
$udp set packetSize_ $wire_bytes
set sink(cbr) [new Agent/LossMonitor]
attach $udp $sink(cbr)
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ $udp_bytes
$cbr set rate_ $udp_bps
$cbr set random_ 0
$cbr attach-agent $udp
$ns at 0 "$cbr start"

# ---- measuring ---------------------------------------------------------------------------------------------------

proc report {} {
    global arm limit seed end_s rate_bps payload_bytes wire_bytes monitor back tcp sink start
    set fields [list "\"arm\":\"$arm\"" "\"buffer\":$limit" "\"seed\":$seed" \
        "\"start_newreno_s\":\"$start(newreno)\"" "\"start_sack_s\":\"$start(sack)\""]
    set sum 0.0
    foreach name {newreno sack cbr} {
        set bytes [$sink($name) set bytes_]
        # A TCP sink counts the wire bytes that it has delivered in order; the integer division discards the SYN.
        if {$name ne "cbr"} { set bytes [expr {int($bytes) / $wire_bytes * $payload_bytes}] }
        set sum [expr {$sum + $bytes}]
        lappend fields "\"goodput_${name}_bps\":[format %.1f [expr {8.0 * $bytes / $end_s}]]"
    }
    set arrivals [$monitor set parrivals_]
    set drops [$monitor set pdrops_]
    lappend fields \
        "\"goodput_efficiency_percent\":[format %.6f [expr {100 * 8 * $sum / $end_s / $rate_bps}]]" \
        "\"drop_percent\":[format %.6f [expr {100.0 * $drops / $arrivals}]]" \
        "\"arrivals_packets\":$arrivals" "\"dropped_packets\":$drops" \
        "\"timeouts_newreno\":[$tcp(newreno) set nrexmit_]" "\"timeouts_sack\":[$tcp(sack) set nrexmit_]" \
        "\"reverse_dropped_packets\":[$back set pdrops_]"
    puts "{[join $fields ,]}"
    exit 0
}

$ns at $end_s report
$ns run
