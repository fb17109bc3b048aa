# A dumbbell full of TCP flows, measured by ns-2.35 (command `ns`). All use NewReno, or half of them SACK.
#
#   ns crowd.tcl CASE FLOWS SEED END_S WARMUP_S
#
# CASE is one of
#   droptail         drop-tail bottleneck
#   droptail-jitter  the same, with each send delayed by up to one packet time (overhead_), so that there are no
#                    phase effects
#   red              gentle RED, wait_ true (ns-2's default spacing of drops)
#   red-nowait       gentle RED, wait_ false (the uniform spacing of Floyd and Jacobson, 1993)
#   red-ecn          as red, ECN on at queue and agents, other values ns-2's defaults
#                    (use_mark_p_ true, mark_p_ 0.1: at higher probabilities, it drops packets instead of marking them)
#   red-ecn-markall  as red-ecn with use_mark_p_ false: it marks over the whole gentle range
#   newreno-ecn-sack as red-ecn-markall at five times the rate; the first half of the flows is NewReno with ECN, the
#                    second half SACK without ECN
#   sack-ecn-newreno the same, but the first half is SACK with ECN, the second half NewReno without ECN
#
# Prints one JSON object on one line. All counts are for the interval from WARMUP_S to END_S.
# ../../vectors/ns2-crowd/README.md explains what ns-2 counts and what every field means.

if {$argc != 5} {
    puts stderr "usage: ns crowd.tcl CASE FLOWS SEED END_S WARMUP_S"
    exit 2
}
lassign $argv case flows seed end_s warmup_s

# ---- the scene: all its numbers are here -------------------------------------------------------------------

set bottleneck_bps      10e6
set bottleneck_delay_s  0.010
set access_bps          100e6
set base_rtt_low_s      0.060
set base_rtt_high_s     0.100
set start_span_s        5.0
set lossless_limit      100000  ;# packets; every queue but the bottleneck's forward one
set payload_bytes       1000    ;# packetSize_; the IP and TCP headers come on top
set header_bytes        40
set wire_bytes          [expr {$payload_bytes + $header_bytes}]
set window_packets      1000    ;# never binding: the pipe and the buffer hold at most 300 packets
set droptail_limit      100     ;# ns-2's count: 99 waiting and 1 in transmission (see README)
set red_limit           200
set red_min_th          15
set red_max_th          45
set red_max_p           0.1
set red_weight          0.002
set packet_time_s       [expr {$wire_bytes * 8 / $bottleneck_bps}]
set jitter_s            0
set mixed               false
set avg_sample_s        0.010   ;# how often RED's average is read

switch -exact -- $case {
    droptail        { set discipline DropTail; set ecn 0; set wait true }
    droptail-jitter { set discipline DropTail; set ecn 0; set wait true; set jitter_s $packet_time_s }
    red             { set discipline RED; set ecn 0; set wait true }
    red-nowait      { set discipline RED; set ecn 0; set wait false }
    red-ecn         { set discipline RED; set ecn 1; set wait true; set use_mark_p true }
    red-ecn-markall { set discipline RED; set ecn 1; set wait true; set use_mark_p false }
    newreno-ecn-sack - sack-ecn-newreno {
        set discipline RED; set ecn 1; set wait true; set use_mark_p false
        set mixed true
        set bottleneck_bps 50e6
        set access_bps     500e6
        set red_limit      400
        set red_min_th     30
        set red_max_th     90
        set packet_time_s  [expr {$wire_bytes * 8 / $bottleneck_bps}]
    }
    default         { puts stderr "unknown case $case"; exit 2 }
}

Queue/DropTail set queue_in_bytes_ false
Queue/DropTail set drop_front_     false
Queue/RED set bytes_           false
Queue/RED set queue_in_bytes_  false
Queue/RED set gentle_          true
Queue/RED set adaptive_        0
Queue/RED set thresh_          $red_min_th
Queue/RED set maxthresh_       $red_max_th
Queue/RED set linterm_         [expr {1.0 / $red_max_p}]
Queue/RED set q_weight_        $red_weight
Queue/RED set mean_pktsize_    $wire_bytes
Queue/RED set wait_            $wait
Queue/RED set setbit_          [expr {$ecn ? "true" : "false"}]
if {[info exists use_mark_p]} { Queue/RED set use_mark_p_ $use_mark_p }

Agent/TCP set packetSize_      $payload_bytes
Agent/TCP set tcpip_base_hdr_size_ $header_bytes
Agent/TCP set useHeaders_      true
Agent/TCP set window_          $window_packets
Agent/TCP set minrto_          0.2
Agent/TCP set overhead_        $jitter_s
Agent/TCP set ecn_             $ecn

# ---- randomness: three streams of MRG32k3a that never overlap, each advanced to its SEED-th substream ------------

set rtt_stream   [new RNG]
set start_stream [new RNG]
foreach stream [list $defaultRNG $rtt_stream $start_stream] {
    for {set i 0} {$i < $seed} {incr i} { $stream next-substream }
}

# ---- the topology ------------------------------------------------------------------------------------------------

set ns [new Simulator]
set left  [$ns node]
set right [$ns node]
$ns simplex-link $left $right $bottleneck_bps $bottleneck_delay_s $discipline
$ns simplex-link $right $left $bottleneck_bps $bottleneck_delay_s DropTail
$ns queue-limit $left $right [expr {$discipline eq "DropTail" ? $droptail_limit : $red_limit}]
$ns queue-limit $right $left $lossless_limit

set link    [$ns link $left $right]
set queue   [$link queue]
set monitor [new QueueMonitor/ED]
$monitor set-pkts-integrator  [new Integrator]
$monitor set-bytes-integrator [new Integrator]
$link attach-monitors [new SnoopQueue/In] [new SnoopQueue/Out] [new SnoopQueue/Drop] $monitor
if {$discipline eq "RED"} {
    # Early drops have their own target, so that they are counted separately from drops at a full
    # buffer.
    set early [new SnoopQueue/EDrop]
    $early set-monitor $monitor
    $early target [$ns set nullAgent_]
    $queue early-drop-target $early
}

# A second monitor on the reverse path proves that no ACK was lost.
set back [$ns monitor-queue $right $left ""]

proc access_link {ns a b delay_s} {
    global access_bps lossless_limit
    $ns duplex-link $a $b $access_bps $delay_s DropTail
    $ns queue-limit $a $b $lossless_limit
    $ns queue-limit $b $a $lossless_limit
}

for {set i 0} {$i < $flows} {incr i} {
    # The start and each of the four access delays are whole nanoseconds, so that another simulator can be given exactly
    # the same scene.
    set base_rtt_s [format %.9f [expr {round([$rtt_stream uniform $base_rtt_low_s $base_rtt_high_s] * 250e6) / 250e6}]]
    set start_s    [format %.9f [$start_stream uniform 0 $start_span_s]]
    set rtt_of($i)   $base_rtt_s
    set start_of($i) $start_s
    set access_delay_s [format %.9f [expr {($base_rtt_s / 2 - $bottleneck_delay_s) / 2}]]

    set sender   [$ns node]
    set receiver [$ns node]
    access_link $ns $sender $left $access_delay_s
    access_link $ns $right $receiver $access_delay_s

    set first [expr {$i < $flows / 2}]
    set sack  [expr {$mixed && $first == ($case eq "sack-ecn-newreno")}]
    set tcp($i)  [new Agent/TCP/[expr {$sack ? "Sack1" : "Newreno"}]]
    set sink($i) [new Agent/TCPSink[expr {$sack ? "/Sack1" : ""}]]
    if {$mixed} { $tcp($i) set ecn_ $first }
    $tcp($i) set fid_ [expr {$i + 1}]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at $start_s "$ftp start"
}

# ---- measuring ---------------------------------------------------------------------------------------------------

set avg_sum 0.0
set avg_samples 0

proc sample_average {} {
    global ns queue avg_sum avg_samples avg_sample_s
    set avg_sum [expr {$avg_sum + [$queue set ave_]}]
    incr avg_samples
    $ns after $avg_sample_s sample_average
}

# Returns all cumulative counts at this time, as a flat list of names and values.
proc snapshot {} {
    global ns monitor back flows tcp sink
    set now [$ns now]
    set pkts  [$monitor get-pkts-integrator]
    set bytes [$monitor get-bytes-integrator]
    $pkts  newpoint $now [$monitor set pkts_]
    $bytes newpoint $now [$monitor set size_]
    set out [list packet_seconds [$pkts set sum_] byte_seconds [$bytes set sum_] back_drops [$back set pdrops_]]
    foreach {name field} {arrivals parrivals_ drops pdrops_ early_drops epdrops_ departures pdepartures_
                          departed_bytes bdepartures_ marks pmarks_} {
        lappend out $name [$monitor set $field]
    }
    for {set i 0} {$i < $flows} {incr i} {
        lappend out delivered,$i [$sink($i) set bytes_] timeouts,$i [$tcp($i) set nrexmit_] \
            sent,$i [$tcp($i) set ndatapack_] resent,$i [$tcp($i) set nrexmitpack_] \
            cuts,$i [$tcp($i) set ncwndcuts_] ecn_cuts,$i [$tcp($i) set necnresponses_]
    }
    return $out
}

proc begin_interval {} {
    global before discipline
    array set before [snapshot]
    if {$discipline eq "RED"} sample_average
}

proc sum_of {name} {
    global flows delta
    set sum 0
    for {set i 0} {$i < $flows} {incr i} { set sum [expr {$sum + $delta($name,$i)}] }
    return $sum
}

proc json_list {values} { return "\[[join $values ,]\]" }

proc report {} {
    global before delta flows case seed warmup_s end_s bottleneck_bps payload_bytes wire_bytes rtt_of start_of
    global avg_sum avg_samples
    array set after [snapshot]
    foreach name [array names after] { set delta($name) [expr {$after($name) - $before($name)}] }
    set span [expr {double($end_s - $warmup_s)}]

    # The sink counts the wire bytes that it delivers in order; the integer division discards a SYN
    # (40 B) in the interval.
    set goodputs {}; set timeouts {}; set rtts {}; set starts {}
    set sum 0.0; set squares 0.0
    for {set i 0} {$i < $flows} {incr i} {
        set segments [expr {int($delta(delivered,$i)) / $wire_bytes}]
        set bps [expr {$segments * $payload_bytes * 8.0 / $span}]
        set sum [expr {$sum + $bps}]
        set squares [expr {$squares + $bps * $bps}]
        lappend goodputs [format %.1f $bps]
        lappend timeouts $delta(timeouts,$i)
        lappend rtts $rtt_of($i)
        lappend starts $start_of($i)
    }
    set jain [expr {$squares > 0 ? $sum * $sum / ($flows * $squares) : 0.0}]
    set avg null
    if {$avg_samples > 0} { set avg [format %.6f [expr {$avg_sum / $avg_samples}]] }

    set fields [list \
        "\"case\":\"$case\"" "\"flows\":$flows" "\"seed\":$seed" "\"warmup_s\":$warmup_s" "\"end_s\":$end_s" \
        "\"goodput_bps\":[format %.1f $sum]" \
        "\"arrivals\":$delta(arrivals)" "\"drops\":$delta(drops)" "\"early_drops\":$delta(early_drops)" \
        "\"tail_drops\":[expr {$delta(drops) - $delta(early_drops)}]" "\"marks\":$delta(marks)" \
        "\"departures\":$delta(departures)" \
        "\"drop_percent\":[format %.6f [expr {100.0 * $delta(drops) / $delta(arrivals)}]]" \
        "\"mark_percent\":[format %.6f [expr {100.0 * $delta(marks) / $delta(arrivals)}]]" \
        "\"mean_queue_packets\":[format %.6f [expr {$delta(packet_seconds) / $span}]]" \
        "\"mean_queue_bytes\":[format %.3f [expr {$delta(byte_seconds) / $span}]]" \
        "\"mean_avg_packets\":$avg" \
        "\"utilisation\":[format %.6f [expr {$delta(departed_bytes) * 8.0 / ($bottleneck_bps * $span)}]]" \
        "\"jain\":[format %.6f $jain]" \
        "\"timeouts_per_flow\":[format %.4f [expr {double([sum_of timeouts]) / $flows}]]" \
        "\"sent_packets\":[sum_of sent]" "\"resent_packets\":[sum_of resent]" \
        "\"window_cuts_per_flow\":[format %.4f [expr {double([sum_of cuts]) / $flows}]]" \
        "\"ecn_responses_per_flow\":[format %.4f [expr {double([sum_of ecn_cuts]) / $flows}]]" \
        "\"ack_drops\":$after(back_drops)" \
        "\"flow_goodput_bps\":[json_list $goodputs]" "\"flow_timeouts\":[json_list $timeouts]" \
        "\"flow_base_rtt_s\":[json_list $rtts]" "\"flow_start_s\":[json_list $starts]"]
    puts "{[join $fields ,]}"
    exit 0
}

$ns at $warmup_s begin_interval
$ns at $end_s report
$ns run
