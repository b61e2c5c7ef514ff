# A cache of a hundred thousand values of a kilobyte, requested with frequencies by Zipf's law.
case $1 in
serve) exec memcached -u nobody -m 512 -p "$PORT" -l 127.0.0.1 ;;
drive) exec python3 ../ask.py memcached "$PORT" ;;
esac
