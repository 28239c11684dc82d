# Settings of the field report tpcc-six-stages, in its own values.
pvcreate --dataalignment 4M /dev/sdc
lvcreate -i 3 -I 8 -n lv02 -L 2G vgdata01
lvcreate -i 3 -I 8 -n lv01 -l 100%FREE vgdata01
mkfs.xfs -f -b size=4096 -l logdev=/dev/mapper/vgdata01-lv02,size=2136997888,sunit=16 \
    -d agcount=9000,sunit=16,swidth=48 /dev/mapper/vgdata01-lv01
blockdev --setra 16384 /dev/dfa
blockdev --setra 16384 /dev/dfb
blockdev --setra 16384 /dev/dfc
blockdev --setra 16384 /dev/dm-0
./configure --with-blocksize=8 --with-pgport=1921 --with-perl --with-python --with-tcl --with-openssl --with-pam --with-ldap \
    --with-libxml --with-libxslt --enable-thread-safety
CFLAGS="-O3 -march=native -flto" CC=/gcc4.9.3/bin/gcc ./configure --with-blocksize=8 \
    --with-pgport=1921 --with-perl --with-python --with-tcl --with-openssl --with-pam --with-ldap \
    --with-libxml --with-libxslt --enable-thread-safety --with-wal-segsize=64
CC=/llvm/bin/clang CFLAGS="-O2 -fstrict-enums" ./configure \
    --with-pgport=1921 --with-perl --with-python --with-tcl --with-openssl --with-pam --with-ldap \
    --with-libxml --with-libxslt --enable-thread-safety
