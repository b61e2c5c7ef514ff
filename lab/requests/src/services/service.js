// A service with a table of a hundred thousand rows. A request reads a row and converts it to text.
const table = new Map();
for (let row = 0; row < 100000; row++) table.set(row, { row, text: `${row}`.repeat(100), parts: [row, row + 1, row + 2] });
require("http")
    .createServer((request, answer) => answer.end(JSON.stringify(table.get(Number(request.url.slice(1))))))
    .listen(Number(process.argv[2]), "127.0.0.1");
