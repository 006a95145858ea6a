// The ping and hello endpoints on Express.
'use strict';

const cluster = require('node:cluster');
const { parseArgs } = require('node:util');
const express = require('express');

const BACKLOG = 65_535;
const KEEP_ALIVE_MS = 75_000;

const { values: args } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string' },
    threads: { type: 'string', default: '1' },
  },
});

function createApp() {
  const app = express();
  app.disable('x-powered-by');

  app.post('/ping', express.json(), (req, res) => {
    const sequence = req.body?.sequence;
    if (!Number.isSafeInteger(sequence) || sequence < 0) {
      res.status(400).json({ error: 'expected an object with a sequence' });
      return;
    }
    res.json({ sequence });
  });

  app.get('/hello', (req, res) => {
    res.type('text/plain').send('Hello, World!');
  });

  // express.json() ends here with a 400 for what is not JSON. Express knows an error handler by its four arguments.
  app.use((error, req, res, next) => {
    const status = error.status ?? 500;
    if (status >= 500) console.error(error);
    res.status(status).json({ error: status >= 500 ? 'internal error' : error.message });
  });
  return app;
}

function serve() {
  const server = createApp().listen(Number(args.port), args.host, BACKLOG, (error) => {
    if (error) throw error;
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  process.once('SIGTERM', () => {
    // From Node 19 on, close() ends idle connections by itself.
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => process.exit(0), 3_000).unref();
  });
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
