# One connection between two Agent/TCP/FullTcp/Newreno of ns-2.35 with chosen faults: prints what both hosts sent.
#
#   ns full_flow.tcl NAME=VALUE..
#
# The client sends `bulk` bytes, or `request` bytes, which the server answers with `response` bytes and a close. Packets
# whose numbers are in `drop` (the client's) or `drop_back` (the server's) are lost, and those in `mark` receive CE;
# the first packet is number 0. Prints one line per packet: time, host (c or s), sequence number, payload,
# acknowledgment, flags.
#
#   client --10 Mbit/s, 10 ms-- router --4 Mbit/s, 20 ms-- server

array set given {window 30 every 2 drop {} drop_back {} mark {} request 400 response 0 bulk 0 end_s 30}
foreach word $argv {
    if {![regexp {^(\w+)=(.*)$} $word - name value] || ![info exists given($name)]} {
        puts stderr "full_flow.tcl: $word: expected NAME=VALUE, with one of the names [lsort [array names given]]"
        exit 2
    }
    set given($name) $value
}
foreach name [array names given] { set $name $given($name) }

Agent/TCP set window_ $window
Agent/TCP set ecn_ 1
Agent/TCP/FullTcp set segsize_ 1460
Agent/TCP/FullTcp set segsperack_ $every
Agent/TCP/FullTcp set nodelay_ true
Trace set show_tcphdr_ 1

set ns [new Simulator]
foreach node {client router server} { set $node [$ns node] }
$ns duplex-link $client $router 10Mb 10ms DropTail
$ns duplex-link $router $server 4Mb 20ms DropTail
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
$passive listen

# The server answers once it has the whole request.
Class Answering -superclass Application
Answering instproc recv {bytes} {
    global received request response passive
    if {[incr received $bytes] == $request} { $passive sendmsg $response MSG_EOF }
}
if {!$bulk} {
    set server_side [new Answering]
    $server_side attach-agent $passive
    $ns at 0.0 "$server_side start"
}
$ns at 0.12 "$active send [expr {$bulk ? $bulk : $request}]"

proc report {} {
    global ns trace path client
    $ns flush-trace
    close $trace
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
