import array, collections, ctypes, gc, hashlib, json, mmap, os, random, re, sqlite3, subprocess, sys, tempfile, threading, zlib

random.seed(5)
numbers = [random.random() for _ in range(400000)]
numbers.sort()
print(hashlib.sha256(array.array("d", numbers).tobytes()).hexdigest())

words = collections.Counter(re.findall(r"\w+", ("to be or not to be " * 20000)))
print(sorted(words.items()))

table = {str(i): [i] * (i % 50) for i in range(60000)}
print(sum(len(v) for v in table.values()), len(json.dumps(table)))
del table
gc.collect()

results = []
def work(n):
    data = bytearray()
    for i in range(400):
        data += os.urandom(0) + bytes([i % 256]) * (n * 97 % 5000)
    results.append((n, zlib.crc32(bytes(data))))
threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(results))

with mmap.mmap(-1, 8 << 20) as area:
    area[5 << 20:(5 << 20) + 5] = b"hello"
    print(area.find(b"hello"), area[:4])
    area.resize(16 << 20)
    print(len(area), area.find(b"hello"))
with mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
    area.write(b"x" * 1000)
    if hasattr(area, "madvise"):
        area.madvise(mmap.MADV_DONTNEED)
        print(area[:10])

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(n * 1000) for n in range(1, 500)]
for n, block in enumerate(blocks, 1):
    ctypes.memset(block, n % 256, n * 1000)
print(all(ctypes.string_at(b + n * 1000 - 1, 1)[0] == n % 256 for n, b in enumerate(blocks, 1)))
[libc.free(b) for b in blocks]
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
print(callback(41))

print(subprocess.run([sys.executable, "-c", "print(sum(range(100000)))"], capture_output=True, text=True).stdout)
print([subprocess.run(["sh", "-c", f"exit {n}"]).returncode for n in (0, 1, 7)])
pids = []
for n in range(8):
    pid = os.fork()
    if pid == 0:
        x = ["child"] * 100000
        os._exit(len(x) % 100 + n)
    pids.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids])

db = sqlite3.connect(":memory:")
db.execute("create table t(a integer, b text)")
db.executemany("insert into t values (?, ?)", ((i, "x" * (i % 300)) for i in range(30000)))
print(db.execute("select count(*), sum(length(b)) from t where a % 3 = 0").fetchone())

grow = b""
for i in range(200):
    grow += b"y" * 20000
print(len(grow))
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(abs, range(-1000, 1000))))
import ctypes; libc = ctypes.CDLL("libc.so.6"); libc.strdup.restype = ctypes.c_void_p
for size in range(1, 10000, 50): libc.free(ctypes.c_void_p(libc.strdup(b"x" * size)))
sys.exit(3)
