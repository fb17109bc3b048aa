# Prints the parameters that ns-2.35's RED computes for settings that request automatic values, one CSV row
# per link and settings:
#
#     ns peers/ns2/red_parameters.tcl > vectors/ns2-red-parameters/parameters.csv

set links {{10Mb 20ms} {45Mb 100ms} {1Mb 1ms}}
set cases {
    {}
    {q_weight_ 0}
    {q_weight_ -1}
    {q_weight_ -2}
    {q_weight_ 0.002}
    {thresh_ 0}
    {thresh_ 5}
    {maxthresh_ 0}
    {thresh_ 7 maxthresh_ 0}
    {thresh_ 0 maxthresh_ 0 targetdelay_ 0.02}
    {thresh_ 0 maxthresh_ 60 mean_pktsize_ 1000}
    {q_weight_ -2 mean_pktsize_ 1000}
}

proc show {rate delay settings q} {
    puts "$rate,$delay,$settings,[$q set q_weight_],[$q set thresh_],[$q set maxthresh_]"
}

# The settings are made before there is a queue, because a queue computes thresholds when it is created.
proc run {rate delay settings} {
    set ns [new Simulator]
    set a [$ns node]
    set b [$ns node]
    foreach {name value} $settings { Queue/RED set $name $value }
    $ns simplex-link $a $b $rate $delay RED
    set q [[$ns link $a $b] queue]
    set source [new Agent/UDP]
    $ns attach-agent $a $source
    set cbr [new Application/Traffic/CBR]
    $cbr attach-agent $source
    set sink [new Agent/Null]
    $ns attach-agent $b $sink
    $ns connect $source $sink
    $ns at 0.1 "$cbr start"
    $ns at 0.5 "show {$rate} {$delay} {$settings} $q; $ns halt"
    $ns run
}

# A process simulates one case.
if {$argc == 3} {
    run {*}$argv
} else {
    puts "rate,delay,settings,q_weight_,thresh_,maxthresh_"
    foreach link $links {
        foreach settings $cases { puts [exec ns $argv0 {*}$link $settings] }
    }
}
