# Settings of the field report full-page-writes, in its own values.
parted -a optimal -s /dev/vdb mklabel gpt mkpart primary 1MiB 100%FREE
mkfs.ext4 /dev/vdb1 -m 0 -O extent,uninit_bg -b 4096 -L lv01
echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource
initdb -D $PGDATA -U postgres -E UTF8 --lc-collate=C --lc-ctype=en_US.utf8
