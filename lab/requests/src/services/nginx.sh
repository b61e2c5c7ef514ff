# A web server with four thousand files of 32 KiB, requested with frequencies by Zipf's law.
case $1 in
prepare)
    mkdir -p site logs
    python3 -c 'import os
for number in range(4000): open(f"site/{number}", "wb").write(os.urandom(32768))'
    cat > nginx.conf <<END
daemon off; master_process off; pid nginx.pid; error_log logs/error.log;
events {}
http { access_log off; sendfile on; keepalive_requests 1000000; server { listen 127.0.0.1:$PORT; root $PWD/site; } }
END
    chmod -R a+rX .
    ;;
serve) exec nginx -p "$PWD" -c "$PWD/nginx.conf" ;;
drive) exec python3 ../ask.py files "$PORT" ;;
esac
