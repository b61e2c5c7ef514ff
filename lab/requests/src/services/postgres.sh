# A database of a million accounts, with the transactions of pgbench.
PATH=/usr/lib/postgresql/15/bin:$PATH
as() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$PWD" "$@"; }
case $1 in
prepare)
    chmod 777 .
    as initdb -D data -A trust -U bench > /dev/null
    as pg_ctl -D data -w -o "-p $PORT -k $PWD -c listen_addresses=" start > /dev/null
    as pgbench -h "$PWD" -p "$PORT" -U bench -i -q -s 10 postgres > /dev/null 2>&1
    as pg_ctl -D data -w stop > /dev/null
    ;;
serve) exec setpriv --reuid=65534 --regid=65534 --clear-groups postgres -D data -p "$PORT" -k "$PWD" -c listen_addresses= ;;
drive)
    until as pg_isready -q -h "$PWD" -p "$PORT" -U bench -d postgres; do sleep 0.1; done
    as pgbench -h "$PWD" -p "$PORT" -U bench -n -c 4 -t 6000 postgres > /dev/null 2>&1
    ;;
esac
