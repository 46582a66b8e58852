#!/usr/bin/env bash
# The gateway's unit under a real systemd: started, told other settings, killed, hung, given a file
# with an error, stopped, with a transfer through it each time. Runs in a user-mode kernel (build.sh):
#
#   bench/virtual/run.sh KERNEL bench/virtual/unit.sh LASTHOP
#
# systemd is the first process of a namespace whose root is in memory and has this machine's /usr.
# Says a line for each step; exit code 1 if one of them is not what it should be.
set -euo pipefail
usage="usage: bench/virtual/run.sh KERNEL bench/virtual/unit.sh LASTHOP"
lasthop=$(realpath "${1:?$usage}")
tree=$(realpath "$(dirname "$0")/../..")
[ -x /lib/systemd/systemd ] || { echo "unit: systemd is missing: apt-get install -y systemd" >&2; exit 3; }
grep -q 'User Mode Linux' /proc/cpuinfo || { echo "$usage" >&2; exit 2; }

root=/mnt
mount -t tmpfs root $root
mkdir -p $root/{usr,opt,etc/systemd/system,etc/lasthop,var/log,var/lib,var/tmp,run,tmp,proc,sys,dev,root,mnt}
for link in bin sbin lib lib32 lib64; do
  [ ! -L /$link ] || ln -s "usr/$link" $root/$link
done
mount --bind /usr $root/usr
cp -a /etc/{passwd,group,shadow,nsswitch.conf,ld.so.cache,ld.so.conf*} $root/etc
cp "$lasthop" $root/opt/lasthop
cp "$tree/bench/virtual/unit-drill.sh" $root/opt/drill.sh
sed 's,/usr/bin/lasthop,/opt/lasthop,' "$tree/dist/lasthop-gateway.service" \
  >$root/etc/systemd/system/lasthop-gateway.service
cat >$root/etc/systemd/system/drill.service <<END
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
After=systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/bash /opt/drill.sh
StandardOutput=file:/opt/out
StandardError=inherit
TimeoutStartSec=infinity
END
printf '[Unit]\nRequires=drill.service\n' >$root/etc/systemd/system/default.target
echo unit >$root/etc/hostname
echo 0123456789abcdef0123456789abcdef >$root/etc/machine-id
unshare --pid --fork --mount bash -c "
  mount -t proc proc $root/proc
  mount -t sysfs sys $root/sys
  mount -t tmpfs dev $root/dev
  cp -a /dev/{null,zero,full,random,urandom,tty} $root/dev
  ln -s pts/ptmx $root/dev/ptmx
  touch $root/dev/console $root/opt/console
  mount --bind $root/opt/console $root/dev/console
  mount -t cgroup2 cgroup $root/sys/fs/cgroup
  cd $root
  pivot_root . mnt
  umount -l mnt
  exec env -i container=unit PATH=$PATH /lib/systemd/systemd --log-target=console --log-level=warning" || true
cat $root/opt/console >&2
cat $root/opt/out
! grep -q '^wrong:' $root/opt/out && grep -q '^all of it' $root/opt/out
