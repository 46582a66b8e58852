#!/usr/bin/env bash
# What unit.sh has systemd run: two hosts beside this machine, and the unit between them.
unit=lasthop-gateway
file=/etc/lasthop/lasthop.toml
lasthop=/opt/lasthop

trap "systemctl poweroff --force --force" EXIT

# $1: what is looked at; the rest: a command that succeeds if it is as it should be.
expect() {
  local what=$1
  shift
  if "$@"; then echo "  $what"; else echo "wrong: $what ($*)"; fi
}
value() { systemctl show -p "$1" --value $unit; }
is() { [ "$(value "$1")" = "$2" ]; }
mode() { $lasthop daemon ctl stats | grep -q "\"mode\":\"$1\""; }
rules() { nft list tables | grep -q 'netdev lasthop'; }
no() { ! "$@"; }

host() { # $1 name, $2 this machine's device, $3 network
  ip netns add "lh-$1"
  ip link add "$2" type veth peer name host0 netns "lh-$1"
  ip addr add "$3.1/24" dev "$2"
  ip link set "$2" up
  ip -n "lh-$1" addr add "$3.2/24" dev host0
  ip -n "lh-$1" link set host0 up
  ip -n "lh-$1" route add default via "$3.1"
}

# Sends 6.5 MB in two seconds, in the background; `arrived` waits and compares.
transfer() {
  ip netns exec lh-mobile python3 - >/tmp/received <<'END' &
import hashlib, socket
here = socket.create_server(("10.2.0.2", 5000))
here.settimeout(100)
there, _ = here.accept()
there.settimeout(100)
digest = hashlib.sha256()
while data := there.recv(65536):
    digest.update(data)
print(digest.hexdigest())
END
  receiver=$!
  ip netns exec lh-fixed python3 - >/tmp/sent <<'END' &
import hashlib, os, socket, time
time.sleep(0.5)
there = socket.create_connection(("10.2.0.2", 5000), timeout=100)
digest = hashlib.sha256()
for _ in range(100):
    data = os.urandom(65536)
    digest.update(data)
    there.sendall(data)
    time.sleep(0.02)
print(digest.hexdigest())
END
  sender=$!
  sleep 1
}
arrived() {
  wait $sender $receiver
  [ -s /tmp/sent ] && cmp -s /tmp/sent /tmp/received
}

host fixed wired0 10.1.0
host mobile radio0 10.2.0
echo 1 >/proc/sys/net/ipv4/ip_forward
printf '%s\n' 'wired = "wired0"' 'radio = "radio0"' 'mobile = ["10.2.0.0/24"]' 'mode = "help"' \
  'control = "/run/lasthop/control"' >$file

echo "Linux $(uname -r), $(systemctl --version | head -1)"
echo "start"
expect "ready when systemctl returns" systemctl start $unit
is ActiveState active || { systemctl status --no-pager --full $unit; journalctl --no-pager; exit 1; }
process=/proc/$(value MainPID)/status
expect "two rights" grep -Pq '^CapEff:\t0000000000003000' "$process"
expect "no others can be had" grep -Pq '^CapBnd:\t0000000000003000' "$process"
expect "not root" no grep -Pq '^Uid:\t0' "$process"
expect "system calls are filtered" grep -Pq '^Seccomp:\t2' "$process"
expect "its rules are there" rules
transfer
expect "a transfer arrives" arrived
echo "reload under a transfer"
transfer
sed -i s/help/observe/ $file
expect "accepted" systemctl reload $unit
expect "looks on" mode observe
sed -i s/observe/help/ $file
expect "accepted" systemctl reload $unit
expect "helps" mode help
expect "the transfer arrives" arrived
echo "a file with an error"
echo 'nonsense = 1' >>$file
expect "reload says so" no systemctl reload $unit
expect "runs on" is ActiveState active
expect "with the old settings" mode help
expect "no restart with it" no systemctl restart $unit
sleep 10
expect "which is not tried again" is ActiveState failed
sed -i /nonsense/d $file
expect "starts with the file mended" systemctl start $unit
echo "a device that is missing"
systemctl stop $unit
ip link set radio0 name radio1
expect "no start" no systemctl start $unit
ip link set radio1 name radio0
ip link set radio0 up
sleep 10
expect "starts when it has come" is ActiveState active
echo "killed under a transfer"
systemctl restart $unit
transfer
kill -9 "$(value MainPID)"
sleep 0.2
expect "leaves no rules" no rules
expect "the transfer arrives" arrived
sleep 5
expect "started again" is ActiveState active
expect "has its rules again" rules
echo "hung under a transfer"
transfer
kill -STOP "$(value MainPID)"
sleep 20
expect "started again within 20 s" is ActiveState active
expect "helps" mode help
expect "the transfer arrives" arrived
echo "stop under a transfer"
transfer
expect "stops" systemctl stop $unit
expect "with success" is Result success
expect "leaves no rules" no rules
expect "leaves no folder" no test -e /run/lasthop
expect "the transfer arrives" arrived
echo "all of it"
