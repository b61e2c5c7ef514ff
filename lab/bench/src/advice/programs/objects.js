// Objects in a map, replaced at random.
const map = new Map();
let state = 1;
const next = () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff);
for (let i = 0; i < 4000000; i++) {
    const key = (next() >> 8) % 150000;
    map.set(key, { key, i, text: "value " + (i % 1000) });
}
console.log(map.size);
