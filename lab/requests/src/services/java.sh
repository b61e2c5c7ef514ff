# A service that fills a table of a hundred megabytes at its start, and makes garbage with each request.
case $1 in
prepare) javac -d . ../Service.java ;;
serve) exec java -Xmx512m -Dsun.net.httpserver.nodelay=true -cp . Service "$PORT" ;;
drive) exec python3 ../ask.py service "$PORT" ;;
esac
