// A server that does rounds of arithmetic for each answer, and so many percent more of its time as it is told.
'use strict';

const http = require('node:http');
const { parseArgs } = require('node:util');

const BASE = 5_000;
// About one percent of what an answer takes, found by timing two numbers of rounds.
const PERCENT = 119;

const { values: args } = parseArgs({
  options: { port: { type: 'string' }, slower: { type: 'string', default: '0' } },
});

// Rounds of xorshift, each waiting for the one before.
function rounds(count, seed) {
  for (let i = 0; i < count; i += 1) {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
  }
  return seed;
}

const count = BASE + Number(args.slower) * PERCENT;
const server = http.createServer((request, response) => {
  // Zero never comes out, so that the rounds cannot be left out.
  if (rounds(count, 2463534242) === 0) throw new Error('xorshift cannot reach zero');
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', 'content-length': 13 });
  response.end('Hello, World!');
});
server.listen(Number(args.port), '127.0.0.1', 65_535);
