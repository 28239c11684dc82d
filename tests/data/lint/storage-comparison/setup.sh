# Settings of the field report storage-comparison, in its own values.
echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource
systemctl enable irqbalance
systemctl start irqbalance
ethtool -L eth0 combined 32
parted -a optimal -s /dev/vdb mklabel gpt mkpart primary 1MiB 100%FREE
pvcreate /dev/vd[b-i]1
vgcreate -A y -s 128M vgdata01 /dev/vd[b-i]1
lvcreate -A y -i 8 -I 8 -l 100%FREE -n lv01 vgdata01
mkfs.ext4 /dev/mapper/vgdata01-lv01 -m 0 -O extent,uninit_bg \
    -E lazy_itable_init=1,stride=2,stripe_width=16 -b 4096 -T largefile -L lv01
mkfs.ext4 /dev/vdj1 -m 0 -O extent,uninit_bg -E lazy_itable_init=1 -b 4096 -T largefile -L vdj1
echo 2 > /sys/block/vdb/queue/rq_affinity
initdb -D $PGDATA -U postgres -E SQL_ASCII --lc-collate=C --lc-ctype=en_US.utf8 --wal-segsize=1024
