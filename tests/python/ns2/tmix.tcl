# Replays the connections of a Tmix file, each with the delay in its line `r`, over links that are never busy.
#
#   ns tmix.tcl FILE SECONDS
#
# Tmix reports on stderr what each endpoint sends and receives.

if {$argc != 2} {
    puts stderr "usage: ns tmix.tcl FILE SECONDS"
    exit 2
}
lassign $argv file seconds
remove-all-packet-headers
add-packet-header IP TCP
set ns [new Simulator]
$ns use-scheduler Heap
Agent/TCP/FullTcp set nodelay_ true
set client [$ns node]
set server [$ns node]
set delays [$ns Tmix_DelayBox]
$delays set-cvfile $file [$client id] [$server id]
$delays set-lossless
foreach {a b} [list $client $delays $delays $server] {
    $ns duplex-link $a $b 1000Mb 0ms DropTail
    $ns queue-limit $a $b 100000
    $ns queue-limit $b $a 100000
}
set tmix [new Tmix]
$tmix set-init $client
$tmix set-acc $server
$tmix set-ID 1
$tmix set-cvfile $file
$tmix set-TCP Newreno
$tmix set-debug 4
$ns at 0 "$tmix start"
$ns at $seconds "exit 0"
$ns run
