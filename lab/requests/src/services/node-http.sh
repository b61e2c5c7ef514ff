# A service that builds a table at its start. Requests are for a tenth of it.
case $1 in
serve) exec node ../service.js "$PORT" ;;
drive) exec python3 ../ask.py service "$PORT" ;;
esac
