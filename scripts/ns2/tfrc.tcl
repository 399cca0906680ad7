# A TFRC flow in ns-2.35, for comparison: ns tfrc.tcl MBPS RTT_MS BUFFER_PACKETS LOSS SECONDS WARMUP REPORTS SEED
#
# Packets of 1000 bytes; REPORTS reports in a round trip; the rate begins with one packet. Prints one line: goodput
# in Mbit/s after the warm-up, and the time of the first drop by the queue, or -1.
if {$argc != 8} { puts stderr "usage: ns tfrc.tcl MBPS RTT_MS BUFFER_PACKETS LOSS SECONDS WARMUP REPORTS SEED"; exit 2 }
lassign $argv mbps rtt buffer loss seconds warmup reports seed
ns-random $seed
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb [expr {$rtt / 2.0}]ms DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left 1000000
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors set rate_ $loss
    $errors unit pkt
    set generator [new RNG]
    $generator seed [expr {$seed + 1}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $generator
    $errors ranvar $uniform
    $ns link-lossmodel $errors $left $right
    $errors drop-target [new Agent/Null]
}
Agent/TFRC set packetSize_ 1000
Agent/TFRC set rate_init_ 1
Agent/TFRC set rate_init_option_ 1
Agent/TFRCSink set NumFeedback_ $reports
set monitor [$ns monitor-queue $left $right ""]
set first -1
set before 0
proc watch {} {
    global ns monitor first
    if {$first < 0 && [$monitor set pdrops_] > 0} { set first [$ns now] } else { $ns at [expr {[$ns now] + 0.01}] watch }
}
set from [new Agent/TFRC]
set to [new Agent/TFRCSink]
$ns attach-agent $left $from
$ns attach-agent $right $to
$ns connect $from $to
set source [new Application/FTP]
$source attach-agent $from
$ns at 0.0 "$from start"
$ns at 0.01 watch
$ns at $warmup { set before [$monitor set bdepartures_] }
$ns at $seconds {
    set bytes [expr {[$monitor set bdepartures_] - $before}]
    puts "[expr {$bytes * 8.0 / 1e6 / ($seconds - $warmup)}] $first"
    exit 0
}
$ns run
