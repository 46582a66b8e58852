# The scenario of `lasthop bench sim` in ns-2: one bulk Reno flow over 10 Mb/s and 2 Mb/s, 1 ms each,
# 1460-byte segments, a window of 44 segments, one ACK per segment, no loss, no trace.
# ns bench/ns2.tcl SEGMENTS
set segments [lindex $argv 0]
set ns [new Simulator]
foreach name {fixed base mobile} { set $name [$ns node] }
$ns duplex-link $fixed $base 10Mb 1ms DropTail
$ns duplex-link $base $mobile 2Mb 1ms DropTail
$ns queue-limit $base $mobile 1000
set tcp [new Agent/TCP/Reno]
$tcp set packetSize_ 1460
$tcp set window_ 44
set sink [new Agent/TCPSink]
$ns attach-agent $fixed $tcp
$ns attach-agent $mobile $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
proc finished {} { exit 0 }
Agent/TCP instproc done {} { finished }
$ns at 0.0 "$ftp produce $segments"
$ns run
