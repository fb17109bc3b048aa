# Draws of ns-2.35's PackMime-HTTP.
#
#   ns packmime.tcl RATE SEED COUNT
#
# Prints COUNT lines `gap request response client_delay server_delay server_time` for a cloud of RATE connections per
# second. The units are, in this order: seconds, bytes, bytes, milliseconds one way, milliseconds one way, seconds.

if {$argc != 3} {
    puts stderr "usage: ns packmime.tcl RATE SEED COUNT"
    exit 2
}
lassign $argv rate seed count
set tcl_precision 17
$defaultRNG seed $seed
set variables [list]
foreach kind {
    {PackMimeHTTPFlowArrive $rate}
    {PackMimeHTTPFileSize $rate 0}
    {PackMimeHTTPFileSize $rate 1}
    {PackMimeHTTPXmit $rate 0}
    {PackMimeHTTPXmit $rate 1}
    {PackMimeHTTPServerDelay 0.63 305}
} {
    set rng [new RNG]
    set variable [eval new RandomVariable/$kind]
    $variable use-rng $rng
    lappend variables $variable
}
for {set i 0} {$i < $count} {incr i} {
    set row [list]
    foreach variable $variables { lappend row [$variable value] }
    puts $row
}
