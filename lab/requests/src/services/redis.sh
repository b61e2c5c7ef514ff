# A cache of a million values. Requests are for the first tenth.
case $1 in
serve) exec redis-server --port "$PORT" --save '' --appendonly no ;;
drive)
    until redis-cli -p "$PORT" ping > /dev/null 2>&1; do sleep 0.1; done
    redis-cli -p "$PORT" eval "for i = 0, 999999 do redis.call('SET', string.format('key:%012d', i), ARGV[1]) end" 0 \
        "$(printf '%0100d' 7)" > /dev/null
    redis-benchmark -p "$PORT" -q -t get -r 100000 -n 2000000 -P 4 > /dev/null
    ;;
esac
