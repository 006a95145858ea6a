// The ping and hello endpoints on Fastify.
'use strict';

const cluster = require('node:cluster');
const { readFileSync } = require('node:fs');
const { parseArgs } = require('node:util');
const fastify = require('fastify');

const BACKLOG = 65_535;
const KEEP_ALIVE_MS = 75_000;

const { values: args } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string' },
    threads: { type: 'string', default: '1' },
    certificate: { type: 'string' },
    key: { type: 'string' },
    http2: { type: 'boolean', default: false },
  },
});

const ping = {
  type: 'object',
  required: ['sequence'],
  properties: {
    sequence: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  },
};

// Nothing without a certificate; with one TLS, and HTTP/2 beside HTTP/1.1 where it is asked for.
function protocol() {
  if (!args.certificate) return {};
  const https = { cert: readFileSync(args.certificate), key: readFileSync(args.key) };
  if (!args.http2) return { https };
  return { http2: true, https: { ...https, allowHTTP1: true } };
}

function createApp() {
  const app = fastify({
    ...protocol(),
    logger: { level: 'warn' },
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A sequence that is a string is wrong, not a number in disguise.
    ajv: { customOptions: { coerceTypes: false } },
  });

  app.post('/ping', { schema: { body: ping, response: { 200: ping } } }, async (request) => ({
    sequence: request.body.sequence,
  }));

  app.get('/hello', async (request, reply) => {
    reply.type('text/plain; charset=utf-8');
    return 'Hello, World!';
  });
  return app;
}

async function serve() {
  const app = createApp();
  process.once('SIGTERM', () => {
    setTimeout(() => process.exit(0), 3_000).unref();
    app.close().then(() => process.exit(0));
  });
  await app.listen({ host: args.host, port: Number(args.port), backlog: BACKLOG });
}

function supervise(workers) {
  let stopping = false;
  for (let i = 0; i < workers; i += 1) cluster.fork();
  cluster.on('exit', (worker, code) => {
    if (stopping) return;
    console.error(`worker ${worker.process.pid} ended with ${code}; starting another`);
    cluster.fork();
  });
  process.once('SIGTERM', () => {
    stopping = true;
    for (const worker of Object.values(cluster.workers)) worker.kill('SIGTERM');
  });
}

const workers = Number(args.threads);
if (workers > 1 && cluster.isPrimary) {
  supervise(workers);
} else {
  serve();
}
