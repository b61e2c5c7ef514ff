# A service that has loaded its libraries and gets a few requests per second.
case $1 in
serve) exec /usr/bin/python3 -c "import numpy, sqlite3, xml.dom, email, asyncio, unittest, http.server
http.server.ThreadingHTTPServer(('127.0.0.1', $PORT), http.server.SimpleHTTPRequestHandler).serve_forever()" ;;
drive) exec python3 ../ask.py seldom "$PORT" ;;
esac
