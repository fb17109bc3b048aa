# Prints how many packets each of COUNT ns-2 sources has sent by each TIME, one line per time: on_off.tcl KIND
# COUNT TIME...
set ns [new Simulator]
set kind [lindex $argv 0]
set count [lindex $argv 1]
set times [lrange $argv 2 end]
$defaultRNG seed 7
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 10Gb 1us DropTail
$ns queue-limit $a $b 1000000
for {set i 0} {$i < $count} {incr i} {
    set agent [new Agent/UDP]
    set sink($i) [new Agent/LossMonitor]
    $ns attach-agent $a $agent
    $ns attach-agent $b $sink($i)
    $ns connect $agent $sink($i)
    set source [new Application/Traffic/$kind]
    $source set packetSize_ 200
    $source set rate_ 80000
    $source set burst_time_ 0.5
    $source set idle_time_ 0.5
    if {$kind == "Pareto"} { $source set shape_ 1.5 }
    $source attach-agent $agent
    $ns at 0.0 "$source start"
}
proc look {} {
    global sink count
    for {set i 0} {$i < $count} {incr i} { puts -nonewline "[$sink($i) set npkts_] " }
    puts ""
}
foreach time $times { $ns at $time look }
$ns at [expr $time + 0.001] "exit 0"
$ns run
