# A Prometheus that scrapes its own metrics each second, and has a day of other metrics.
case $1 in
prepare)
    printf 'scrape_configs:\n- {job_name: self, scrape_interval: 1s, static_configs: [{targets: ["127.0.0.1:%s"]}]}\n' "$PORT" > prometheus.yml
    python3 -c 'import time
now = int(time.time())
for at in range(now - 86400, now - 7200, 60):
    for one in range(500): print(f"load{{host=\"h{one}\"}} {at % 977} {at}")
print("# EOF")' > day
    promtool tsdb create-blocks-from openmetrics --quiet day data
    rm day
    ;;
serve) exec prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="127.0.0.1:$PORT" ;;
drive) exec python3 ../ask.py prometheus "$PORT" ;;
esac
