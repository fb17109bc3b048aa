# Prints how many of 200 simultaneous packets pass an ns-2 queue at an idle link (the transmission of the first
# begins immediately).
#
#   ns held.tcl DropTail|REM IN_BYTES LIMIT SIZE MEAN
#
# Packets have SIZE bytes. If IN_BYTES is 0, the limit is LIMIT packets; if it is 1, LIMIT packets of MEAN bytes.

lassign $argv kind in_bytes limit size mean
switch -exact -- $kind {
    DropTail { set unit queue_in_bytes_ }
    REM      { set unit qib_ }
    default  { error "no queue `$kind`" }
}
Queue/$kind set $unit $in_bytes
Queue/$kind set mean_pktsize_ $mean
set ns [new Simulator]
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b 1Mb 10ms $kind
$ns queue-limit $a $b $limit
set source [new Agent/UDP]
$source set packetSize_ 100000
$ns attach-agent $a $source
set sink [new Agent/LossMonitor]
$ns attach-agent $b $sink
$ns connect $source $sink
$ns at 1.0 "for {set i 0} {\$i < 200} {incr i} {$source send $size}"
$ns at 100.0 "puts \"\[$sink set npkts_\] of 200 got through\"; exit 0"
$ns run
