# Settings of the field report benchmarksql-9.5, in its own values.
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
