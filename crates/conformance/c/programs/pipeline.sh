i=0
while [ $i -lt 200 ]; do echo "line $i $(echo nested $i)"; i=$((i + 1)); done | sort -r | awk '{ s += length($0); print } END { print s }' | sed -n 's/line/LINE/;1,5p;$p'
find /usr/share/common-licenses -type f 2>/dev/null | sort | xargs cat 2>/dev/null | tr a-z A-Z | sort | uniq -c | sort -rn | head -20 | cksum
seq 1 200000 | gzip -9 | gzip -d | sort -n -S 20M | md5sum
tar cf - -C /usr/share/common-licenses . 2>/dev/null | tar tf - | sort | head -3
kill -TERM $$
