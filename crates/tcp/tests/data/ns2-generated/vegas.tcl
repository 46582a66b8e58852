# The course of cwnd of ns-2's Vegas on paths where nothing is lost:
#   ns vegas.tcl RATE DELAY
# Prints cwnd in packets every half second for 20 s, with three decimals. There is no SYN, so that
# cwnd begins with two packets; ns-2's Vegas sends packets of 1000 bytes, headers included.
remove-all-packet-headers
add-packet-header Flags IP TCP
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
set ns [new Simulator]
foreach name {s1 r1 k1} { set node($name) [$ns node] }
$ns duplex-link $node(s1) $node(r1) 8Mb 0ms DropTail
$ns duplex-link $node(r1) $node(k1) [lindex $argv 0] [lindex $argv 1] DropTail
$ns queue-limit $node(r1) $node(k1) 100
set tcp [$ns create-connection TCP/Vegas $node(s1) TCPSink $node(k1) 1]
$tcp set window_ 1000
set ftp [$tcp attach-app FTP]
proc show {} {
    global ns tcp
    puts [format %.3f [$tcp set cwnd_]]
    $ns at [expr [$ns now] + 0.5] show
}
$ns at 1.0 "$ftp start"
$ns at 1.5 show
$ns at 21.1 "exit 0"
$ns run
