# One connection between two Agent/TCP/FullTcp/Newreno of ns-2.35 with chosen faults: prints what both hosts sent.
#
#   ns full_flow.tcl NAME=VALUE..
#
# The client sends `bulk` bytes, or `request` bytes, which the server answers with `response` bytes and a close, or makes
# the `exchanges`: words `GAP_S:REQUEST:RESPONSE`, each of them begun GAP_S after the response before it has arrived (the
# first, 0.12 s after the start). Then the side `close` closes: `c`, `s`, or none. Packets whose numbers are in `drop`
# (the client's) or `drop_back` (the server's) are lost, and those in `mark` receive CE; the first packet is number 0.
# Prints the phase of the agents' clocks, and one line per packet: time, host (c or s), sequence number, payload, acknowledgment, flags.
#
#   client --10 Mbit/s, 10 ms-- router --4 Mbit/s, `delay_ms`-- server

array set given {window 30 every 2 drop {} drop_back {} mark {} request 400 response 0 bulk 0 end_s 30 delay_ms 20
    exchanges {} close s initial 2 ecn 1}
foreach word $argv {
    if {![regexp {^(\w+)=(.*)$} $word - name value] || ![info exists given($name)]} {
        puts stderr "full_flow.tcl: $word: expected NAME=VALUE, with one of the names [lsort [array names given]]"
        exit 2
    }
    set given($name) $value
}
foreach name [array names given] { set $name $given($name) }

Agent/TCP set window_ $window
Agent/TCP set windowInit_ $initial
Agent/TCP set ecn_ $ecn
Agent/TCP/FullTcp set segsize_ 1460
Agent/TCP/FullTcp set segsperack_ $every
Agent/TCP/FullTcp set nodelay_ true
Trace set show_tcphdr_ 1

set ns [new Simulator]
foreach node {client router server} { set $node [$ns node] }
$ns duplex-link $client $router 10Mb 10ms DropTail
$ns duplex-link $router $server 4Mb ${delay_ms}ms DropTail
foreach {a b} [list $client $router $router $client $router $server $server $router] { $ns queue-limit $a $b 1000 }
set path /tmp/aqmlab-full-flow-[pid].tr
set trace [open $path w]
$ns trace-queue $client $router $trace
$ns trace-queue $server $router $trace

proc fault {from to numbers mark} {
    global ns
    if {[llength $numbers] == 0} return
    set model [new ErrorModel/List]
    if {$mark} { $model set markecn_ true }
    $model droplist $numbers
    $ns lossmodel $model $from $to
}
fault $client $router $drop 0
fault $server $router $drop_back 0
fault $router $server $mark 1

foreach {name node} [list active $client passive $server] {
    set $name [new Agent/TCP/FullTcp/Newreno]
    $ns attach-agent $node [set $name]
}
$ns connect $active $passive

# The clock of an agent starts at a random phase within a tick, drawn when it is reset, which a client is again when it
# opens a connection. With the same seed before each, both agents have the same phase, and `report` can repeat the draw.
proc seed {} {
    global defaultRNG
    $defaultRNG seed 20061
}
$ns at 0.0 "seed; $passive reset; $passive listen"

# Exchange number `turn` is the current one. Each side counts what has arrived in it.
if {![llength $exchanges]} { set exchanges [list "0:$request:$response"] }
set turn 0
set received(c) 0
set received(s) 0
proc field {number} {
    global exchanges turn
    return [lindex [split [lindex $exchanges $turn] :] $number]
}
proc is_last {} {
    global exchanges turn
    return [expr {$turn == [llength $exchanges] - 1}]
}
proc ask {} {
    global active
    $active send [field 1]
}

# The server answers once it has the whole request.
Class Answering -superclass Application
Answering instproc recv {bytes} {
    global received passive close
    if {[incr received(s) $bytes] == [field 1]} {
        set received(s) 0
        if {[is_last] && $close eq "s"} {
            $passive sendmsg [field 2] MSG_EOF
        } else {
            $passive send [field 2]
        }
    }
}
Class Asking -superclass Application
Asking instproc recv {bytes} {
    global ns received active close turn
    if {[incr received(c) $bytes] == [field 2]} {
        set received(c) 0
        if {![is_last]} {
            incr turn
            $ns at [expr {[$ns now] + [field 0]}] ask
        } elseif {$close eq "c"} {
            $active close
        }
    }
}
if {!$bulk} {
    set server_side [new Answering]
    $server_side attach-agent $passive
    $ns at 0.0 "$server_side start"
    set client_side [new Asking]
    $client_side attach-agent $active
    $ns at 0.0 "$client_side start"
}
$ns at 0.12 [expr {$bulk ? "seed; $active send $bulk" : "seed; ask"}]

proc report {} {
    global ns trace path client active defaultRNG
    $ns flush-trace
    close $trace
    seed
    puts [format "# tick_phase_ns %.0f" [expr {[$defaultRNG uniform 0 [$active set tcpTick_]] * 1e9}]]
    set file [open $path]
    while {[gets $file line] >= 0} {
        lassign $line event at from to type size flags fid source destination sequence uid acked tcp_flags header
        # A packet that is lost on purpose appears only as `d`, without a `+`.
        if {$event ne "+" && $event ne "d"} continue
        puts [list $at [expr {$from == [$client id] ? "c" : "s"}] $sequence [expr {$size - $header}] $acked $tcp_flags]
    }
    close $file
    file delete $path
    exit 0
}
$ns at $end_s report
$ns run
