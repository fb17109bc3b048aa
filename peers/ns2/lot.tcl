# A parking lot of eight routers under long-lived flows and web traffic, measured by ns-2.35 (command `ns`): the network
# of Weigle, Vembar and Du. Every connection is a pair of Agent/TCP/FullTcp/Newreno with ECN.
#
#   ns lot.tcl NAME=VALUE..
#
# The parameters and their defaults are in `given` below. Web users are simulated by Tmix, with connection vectors from
# the folder `vectors` (lot.py writes them), or by ns-2's own PackMime-HTTP. Prints one JSON object on one line, with
# counts for each congested link in the forward direction, from warmup_s to end_s; Tmix logs its connections on standard
# error.
#
# R0..R7 are a chain of duplex links; the congested ones are R1-R2, R3-R4 and R5-R6, or only the first one or two of
# these if `queues` names fewer. The classes of traffic, with the route of their data, which always goes
# from two nodes (_a and _b) to two others:
#   long     R0 -> R7   long_back   R7 -> R0   five long-lived flows from each node
#   web      R0 -> R7   web_back    R7 -> R0   a cloud of web servers at each node
#   crossN   R(2N-1) -> R(2N), and crossN_back in the reverse direction: the same, over congested link N

array set given {
    queues    DT
    rate      10e6
    delay     0.001
    limit     200
    mean      615
    access    4e6
    slow      1e6
    window    30
    segment   1460
    every     2
    nodelay   true
    min_rto   0.2
    mark_p    true
    web_rate  27
    cross_rate 23
    warmup_s  60
    end_s     300
    seed      1
    vectors   {}
}
foreach word $argv {
    if {![regexp {^(\w+)=(.*)$} $word - name value] || ![info exists given($name)]} {
        puts stderr "lot.tcl: $word: expected NAME=VALUE, with one of the names [lsort [array names given]]"
        exit 2
    }
    set given($name) $value
}
foreach name [array names given] { set $name $given($name) }
set queues [split $queues ,]
set congested [llength $queues]
set tcl_precision 17
$defaultRNG seed $seed

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]

# ---- queues and TCP ----------------------------------------------------------------------------------------------

Queue/DropTail set queue_in_bytes_ false
foreach kind {RED PI REM} { Queue/$kind set mean_pktsize_ $mean }
foreach {name value} "queue_in_bytes_ true bytes_ true setbit_ true adaptive_ 1 gentle_ true targetdelay_ 0.010
        thresh_ 0 maxthresh_ 0 q_weight_ -1 top_ 0.5 use_mark_p_ $mark_p" {
    Queue/RED set $name $value
}
foreach {name value} {queue_in_bytes_ true bytes_ true setbit_ true qref_ 20 a_ 1.822e-5 b_ 1.816e-5 w_ 170} {
    Queue/PI set $name $value
}
foreach {name value} {qib_ true markpkts_ true pbo_ 20} { Queue/REM set $name $value }
array set class_of {DT DropTail ARED RED PI PI REM REM}

Agent/TCP set window_ $window
Agent/TCP set ecn_ 1
Agent/TCP set minrto_ $min_rto
Agent/TCP/FullTcp set segsize_ $segment
Agent/TCP/FullTcp set segsperack_ $every
Agent/TCP/FullTcp set nodelay_ $nodelay

# ---- routers and their links -------------------------------------------------------------------------------------

set box [expr {$vectors eq "" ? "DelayBox" : "Tmix_DelayBox"}]
for {set i 0} {$i < 8} {incr i} { set r($i) [$ns $box] }
for {set i 0} {$i < 7} {incr i} {
    set j [expr {$i + 1}]
    set queue DT
    if {$i % 2 && $i / 2 < $congested} { set queue [lindex $queues [expr {$i / 2}]] }
    $ns duplex-link $r($i) $r($j) $rate $delay $class_of($queue)
    $ns queue-limit $r($i) $r($j) $limit
    $ns queue-limit $r($j) $r($i) $limit
}

# Creates a node at a router.
proc host {router rate} {
    global ns r
    set node [$ns node]
    $ns duplex-link $node $r($router) $rate 0.001 DropTail
    $ns queue-limit $node $r($router) 10000
    $ns queue-limit $r($router) $node 10000
    return $node
}

# ---- traffic -----------------------------------------------------------------------------------------------------

# Sets the delays between a pair of nodes, at the routers to which they are connected.
proc delays {name from to near far} {
    global r vectors ns
    if {$vectors eq ""} {
        foreach {router server} [list $from 1 $to 0] {
            set draw [new RandomVariable/PackMimeHTTPXmit [expr {$::web_rate}] $server]
            $draw use-rng [new RNG]
            foreach {a b} [list $near $far $far $near] { $r($router) add-rule [$a id] [$b id] $draw }
        }
        return
    }
    $r($from) set-cvfile $vectors/$name.near [$near id] [$far id]
    $r($to) set-cvfile $vectors/$name.far [$near id] [$far id]
    foreach router [list $from $to] { $r($router) set-lossless }
}

# Creates five long-lived flows from a node at router `from` to a node at router `to`.
proc long {name from to starts} {
    global ns slow tcps class
    set near [host $from $slow]
    set far [host $to $slow]
    set class([$near id]) $name
    set class([$far id]) $name
    delays $name $from $to $near $far
    set fid 0
    foreach start $starts {
        set source [new Agent/TCP/FullTcp/Newreno]
        set sink [new Agent/TCP/FullTcp/Newreno]
        $ns attach-agent $near $source
        $ns attach-agent $far $sink
        $source set fid_ [incr fid]
        $sink set fid_ $fid
        $ns connect $source $sink
        $sink listen
        set ftp [new Application/FTP]
        $ftp attach-agent $source
        $ns at $start "$ftp start"
        lappend tcps($name) $source
    }
}

# Creates a cloud of web users, with the servers at router `from` and the clients at router `to`.
proc web {name from to rate} {
    global ns access vectors class clients
    set near [host $from $access]
    set far [host $to $access]
    set class([$near id]) $name
    set class([$far id]) $name
    lappend clients "\"[$far id]\":\"$name\""
    delays $name $from $to $near $far
    if {$vectors eq ""} {
        set cloud [new PackMimeHTTP]
        $cloud set-client $far
        $cloud set-server $near
        $cloud set-rate $rate
        $cloud set-http-1.1
        $cloud set-TCP Newreno
        set arrive [new RandomVariable/PackMimeHTTPFlowArrive $rate]
        set sizes(0) [new RandomVariable/PackMimeHTTPFileSize $rate 0]
        set sizes(1) [new RandomVariable/PackMimeHTTPFileSize $rate 1]
        foreach draw [list $arrive $sizes(0) $sizes(1)] { $draw use-rng [new RNG] }
        $cloud set-flow_arrive $arrive
        $cloud set-req_size $sizes(0)
        $cloud set-rsp_size $sizes(1)
        $ns at 0.0 "$cloud start"
        return
    }
    set tmix [new Tmix]
    $tmix set-init $far
    $tmix set-acc $near
    $tmix set-ID [$near id]
    $tmix set-cvfile $vectors/$name.tmix
    $tmix set-TCP Newreno
    # Because the last pause would end only after the run, the server closes with its last byte.
    $tmix set-end 2000
    $tmix set-fin-time 2000000000
    $tmix set-debug 4
    $ns at 0.0 "$tmix start"
}

set spread [new RNG]
foreach {name from to} {long 0 7 long_back 7 0} {
    foreach side {a b} {
        set starts [list]
        if {$vectors eq ""} {
            for {set i 0} {$i < 5} {incr i} { lappend starts [$spread uniform [expr {$warmup_s / 2.0}] $warmup_s] }
        } else {
            set file [open $vectors/${name}_$side.starts]
            set starts [read $file]
            close $file
        }
        long ${name}_$side $from $to $starts
    }
}
foreach side {a b} {
    web web_$side 0 7 $web_rate
    web web_back_$side 7 0 $web_rate
    for {set n 1} {$n <= $congested} {incr n} {
        web cross${n}_$side [expr {2 * $n - 1}] [expr {2 * $n}] $cross_rate
        web cross${n}_back_$side [expr {2 * $n}] [expr {2 * $n - 1}] $cross_rate
    }
}

# ---- measuring: each congested link, forward ---------------------------------------------------------------------

for {set n 1} {$n <= $congested} {incr n} {
    set link [$ns link $r([expr {2 * $n - 1}]) $r([expr {2 * $n}])]
    set monitor($n) [$ns makeflowmon SrcDest]
    $ns attach-fmon $link $monitor($n)
    $monitor($n) set-pkts-integrator [new Integrator]
    $monitor($n) set-bytes-integrator [new Integrator]
}

# Returns all cumulative counts at this time, as a flat list of names and values.
proc snapshot {} {
    global ns monitor tcps class congested
    set now [$ns now]
    for {set n 1} {$n <= $congested} {incr n} {
        set m $monitor($n)
        foreach {kind field} {pkts pkts_ bytes size_} {
            set integral [$m get-$kind-integrator]
            $integral newpoint $now [$m set $field]
            lappend out $n,$kind [$integral set sum_]
        }
        foreach field {parrivals_ barrivals_ pdrops_ pdepartures_ bdepartures_} {
            lappend out $n,$field [$m set $field]
        }
        foreach flow [$m flows] {
            set name $class([$flow set src_])
            foreach field {parrivals_ pdrops_} { lappend out $n,$name,$field,[$flow set src_] [$flow set $field] }
        }
    }
    foreach name [array names tcps] {
        foreach tcp $tcps($name) { lappend out acked,$name,$tcp [$tcp set ack_] }
    }
    return $out
}

proc begin {} {
    global before
    array set before [snapshot]
}

proc ratio {a b} { return [expr {$b ? double($a) / $b : 0.0}] }

# Returns the sum of the changes in all counts whose names match.
proc change {pattern} {
    global before after
    set sum 0.0
    foreach name [array names after $pattern] {
        set sum [expr {$sum + $after($name) - ([info exists before($name)] ? $before($name) : 0)}]
    }
    return $sum
}

proc json args {
    foreach {name value} $args { lappend fields "\"$name\":$value" }
    return "{[join $fields ,]}"
}

proc report {} {
    global after congested rate warmup_s end_s seed queues clients
    array set after [snapshot]
    set span [expr {double($end_s - $warmup_s)}]
    set links [list]
    for {set n 1} {$n <= $congested} {incr n} {
        set of [list]
        foreach name [concat long web long_back web_back cross$n cross${n}_back] {
            lappend of "\"$name\":[json arrivals [change "$n,${name}_\[ab\],parrivals_,*"] \
                drops [change "$n,${name}_\[ab\],pdrops_,*"]]"
        }
        set arrivals [change $n,parrivals_]
        lappend links [json name "\"R[expr {2 * $n - 1}]-R[expr {2 * $n}]\"" arrivals $arrivals drops [change $n,pdrops_] \
            mean_packet_bytes [ratio [change $n,barrivals_] $arrivals] queue_packets [ratio [change $n,pkts] $span] \
            queue_bytes [ratio [change $n,bytes] $span] \
            utilisation [ratio [expr {8 * [change $n,bdepartures_]}] [expr {$rate * $span}]] of "{[join $of ,]}"]
    }
    puts [json queues "\"[join $queues ,]\"" seed $seed warmup_s $warmup_s end_s $end_s \
        goodput_bps [ratio [expr {8 * [change acked,long_\[ab\],*]}] $span] \
        goodput_back_bps [ratio [expr {8 * [change acked,long_back_\[ab\],*]}] $span] \
        clients "{[join $clients ,]}" links "\[[join $links ,]\]"]
    exit 0
}

$ns at $warmup_s begin
$ns at $end_s report
$ns run
