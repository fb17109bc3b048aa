# One ns-2 flow with chosen faults: prints the time at which the sender sent each data segment, and the number of the
# segment's first byte (counted from 0).
#
#   ns single_flow.tcl CASES.csv CASE     prints the vector of one case
#
# The columns of CASES.csv are explained in vectors/ns2-single-flow/README.md.
#
#   sender --10 Mbit/s, 10 ms-- router --1 Mbit/s, 20 ms-- receiver

lassign $argv cases_file wanted

proc read_case {path wanted} {
    set file [open $path]
    gets $file line
    set columns [split $line ,]
    while {[gets $file line] >= 0} {
        foreach column $columns value [split $line ,] { dict set row $column $value }
        if {[dict get $row case] eq $wanted} {
            close $file
            return $row
        }
    }
    error "no case `$wanted` in $path"
}

# Drops the packets with these numbers (counted from 0) as they are about to enter the link's queue.
proc drop_on {from to numbers} {
    global ns
    if {[llength $numbers] == 0} return
    set model [new ErrorModel/List]
    $model droplist $numbers
    $ns lossmodel $model $from $to
}

# Sets CE on the packets with these numbers (counted from 0) as they are about to enter the link's queue.
proc mark_on {from to numbers} {
    global ns
    if {[llength $numbers] == 0} return
    set model [new ErrorModel/List]
    $model set markecn_ true
    $model droplist $numbers
    $ns lossmodel $model $from $to
}

set row [read_case $cases_file $wanted]
foreach column {recovery window mss sink ecn queue drop drop_ack mark writes end_s jitter_us} {
    set $column [dict get $row $column]
}

set ns [new Simulator]
set sender [$ns node]
set router [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $router 10Mb 10ms DropTail
$ns duplex-link $router $receiver 1Mb 20ms DropTail
$ns queue-limit $sender $router 1000
$ns queue-limit $router $sender 1000
$ns queue-limit $receiver $router 1000
$ns queue-limit $router $receiver $queue

set trace_path "/tmp/aqmlab-single-flow-[pid].tr"
set trace [open $trace_path w]
$ns trace-queue $sender $router $trace
drop_on $sender $router $drop
drop_on $receiver $router $drop_ack
mark_on $router $receiver $mark

switch -exact -- $recovery {
    tahoe   { set agent ""; set sinks Agent/TCPSink }
    reno    { set agent Reno; set sinks Agent/TCPSink }
    newreno { set agent Newreno; set sinks Agent/TCPSink }
    sack    { set agent Sack1; set sinks Agent/TCPSink/Sack1 }
    default { error "no recovery `$recovery`" }
}
set tcp [new [string trimright Agent/TCP/$agent /]]
$tcp set window_ $window
$tcp set packetSize_ $mss
$tcp set ecn_ $ecn
set jitter [expr {$jitter_us eq "" ? 0 : $jitter_us * 1e-6}]
$tcp set overhead_ $jitter
$ns attach-agent $sender $tcp
if {$sink eq "second"} {
    append sinks /DelAck
}
set tcp_sink [new $sinks]
$ns attach-agent $receiver $tcp_sink
$ns connect $tcp $tcp_sink
foreach write $writes {
    lassign [split $write :] at packets
    if {$packets eq "inf"} {
        $ns at $at "$tcp send -1"
    } else {
        $ns at $at "$tcp advanceby $packets"
    }
}

# The agent's clock starts at a random phase within a tick. This phase is the agent's first draw
# from the default generator, made when the run resets the agents. The agent's further draws are the
# sender's delays. With the same seed, `report` can repeat all of these draws.
$defaultRNG seed 20061

proc report {} {
    global ns trace trace_path tcp jitter defaultRNG mss
    $ns flush-trace
    close $trace
    set sends {}
    set file [open $trace_path]
    while {[gets $file line] >= 0} {
        lassign $line event time from to type size flags fid src dst number
        # A packet that the error model drops appears as `d` only; the queue here never overflows.
        if {($event eq "+" || $event eq "d") && $type eq "tcp" && $number > 0} {
            # ns-2's one-way agents number packets, not bytes, and packet 0 is the SYN.
            lappend sends [format "%.0f,%d" [expr {$time * 1e6}] [expr {($number - 1) * $mss}]]
        }
    }
    close $file
    file delete $trace_path
    $defaultRNG seed 20061
    puts [format "# tick_phase_ns %.0f" [expr {[$defaultRNG uniform 0 [$tcp set tcpTick_]] * 1e9}]]
    if {$jitter > 0} {
        # Prints at least as many delays as the sender can have drawn: one for the SYN and one per
        # acknowledged packet.
        set delays {}
        for {set i 0} {$i < [llength $sends] + 10} {incr i} {
            lappend delays [format "%.0f" [expr {[$defaultRNG uniform 0 $jitter] * 1e9}]]
        }
        puts "# delays_ns $delays"
    }
    puts "send_us,sequence"
    puts [join $sends "\n"]
    exit 0
}
$ns at $end_s report
$ns run
