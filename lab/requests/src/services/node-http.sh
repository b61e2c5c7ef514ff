# A service that has read a table at its start, of which a tenth is asked for.
case $1 in
serve) exec node ../service.js "$PORT" ;;
drive) exec python3 ../ask.py service "$PORT" ;;
esac
