# A key-value server (redis) that its own client fills, queries and empties. Both programs are measured.
set -e
redis-server --port 0 --unixsocket ./socket --save '' --appendonly no --loglevel warning >/dev/null &
server=$!
turns=0
while ! redis-cli -s ./socket ping >/dev/null 2>&1; do
    turns=$((turns + 1))
    [ $turns -lt 500 ] || exit 1
    sleep 0.01
done
redis-benchmark -s ./socket -q -n 150000 -r 100000 -P 16 -d 300 -t set,get,lpush,lpop,sadd,hset >/dev/null
redis-cli -s ./socket eval \
    'for n = 0, 99999 do redis.call("del", string.format("key:%012d", n)) end return redis.call("dbsize")' 0
redis-cli -s ./socket shutdown nosave || true
wait $server
