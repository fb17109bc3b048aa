# One slow Adaptive RED link of ns-2.35, with its queue in bytes and byte mode on, under an open load of UDP
# datagrams of 200 to 1000 bytes at Poisson instants.
#
#   ns adaptive_red.tcl LOAD WAIT SEED ARRIVALS FENG ON_S OFF_S
#
# FENG 1 selects Self-Configuring RED with the factors 3 and 2. The load alternates between ON_S seconds on
# and OFF_S seconds off (OFF_S 0: always on).
#
# Prints one line per arrival, `A arrival_ns size waiting_bytes avg prob max_p fate`, then the generator's draws, `U value`.

lassign $argv load wait seed arrivals feng on_s off_s
set tcl_precision 17
foreach {name value} {bytes_ true queue_in_bytes_ true gentle_ true adaptive_ 1 bottom_ 0.01 thresh_ 5 maxthresh_ 15
                      linterm_ 10 q_weight_ 0.02 mean_pktsize_ 1000} {
    Queue/RED set $name $value
}
if {$feng} {
    foreach {name value} {feng_adaptive_ 1 alpha_ 3 beta_ 2} { Queue/RED set $name $value }
}
Queue/RED set wait_ [expr {$wait ? "true" : "false"}]
Agent/UDP set packetSize_ 1000

# RED draws from the default generator. A second generator with the same seed gives the same sequence.
$defaultRNG seed $seed
set twin [new RNG]
$twin seed $seed
set gaps [new RNG]
$gaps seed [expr {$seed + 1}]

set ns [new Simulator]
set near [$ns node]
set far  [$ns node]
$ns simplex-link $near $far 1e6 0.001 RED
$ns simplex-link $far $near 1e6 0.001 DropTail
$ns queue-limit $near $far 60
set link  [$ns link $near $far]
set queue [$link queue]
set monitor [new QueueMonitor/ED]
$link attach-monitors [new SnoopQueue/In] [new SnoopQueue/Out] [new SnoopQueue/Drop] $monitor
set early [new SnoopQueue/EDrop]
$early set-monitor $monitor
$early target [$ns set nullAgent_]
$queue early-drop-target $early

set source [new Agent/UDP]
$ns attach-agent $near $source
set drain [new Agent/Null]
$ns attach-agent $far $drain
$ns connect $source $drain

proc arrive {at_ns size} {
    global source queue monitor
    set waiting [$monitor set size_]
    set early   [$monitor set epdrops_]
    set lost    [$monitor set pdrops_]
    $source send $size
    set fate admitted
    if {[$monitor set epdrops_] > $early} {
        set fate early
    } elseif {[$monitor set pdrops_] > $lost} {
        set fate full
    }
    puts "A $at_ns $size $waiting [$queue set ave_] [$queue set prob1_] [$queue set cur_max_p_] $fate"
}

set at_s 0.0
for {set i 0} {$i < $arrivals} {incr i} {
    set at_s  [expr {$at_s - log(1.0 - [$gaps uniform 0 1]) / ($load * 125.0)}]
    set at_ns [expr {round(($at_s + floor($at_s / $on_s) * $off_s) * 1e9)}]
    set size  [expr {200 + (($i * 37) % 5) * 200}]
    $ns at [format %d.%09d [expr {$at_ns / 1000000000}] [expr {$at_ns % 1000000000}]] "arrive $at_ns $size"
}
proc finish {} {
    global twin arrivals
    for {set i 0} {$i < $arrivals} {incr i} { puts "U [$twin uniform 0 1]" }
    exit 0
}
$ns at [expr {$at_ns / 1e9 + 10.0}] finish
$ns run
