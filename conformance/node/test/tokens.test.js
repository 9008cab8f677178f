// Logins with the tokens of a certified OpenID provider, `oidc-provider`: those of programs, and those that people get by
// the code flow with PKCE. The provider is strict: it takes a code once, wants the resource named at both of its ends
// (RFC 8707), and gives a new refresh token for each old one.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { createServer as createListener } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import amqp from 'amqplib';
import Provider from 'oidc-provider';
import { Browser } from '../browser.js';
import { patienceMs, settle } from '../broker.js';

const binary = process.env.COURSER_TEST_BINARY;
// Only our broker is set up here.
const options = { skip: binary ? false : 'COURSER_TEST_BINARY names no broker' };
const RESOURCE = 'urn:mq';
const SCOPES = ['mq.read:*/*', 'mq.write:*/*', 'mq.configure:*/*', 'mq.tag:administrator'];
// Seconds for which a token of a person is good: shorter than the 30 in which the broker renews it.
const SHORT = 15;
const world = {};

async function freePort() {
  const listener = createListener().listen(0, '127.0.0.1');
  await new Promise((done) => listener.once('listening', done));
  const { port } = listener.address();
  await new Promise((done) => listener.close(done));
  return port;
}

function certificates(folder) {
  const openssl = (...words) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=authority', '-keyout', 'authority.key', '-out', 'authority.pem');
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost',
    '-addext', 'basicConstraints=critical,CA:FALSE', '-CA', 'authority.pem', '-CAkey', 'authority.key', '-keyout', 'own.key', '-out', 'own.pem');
}

function provider(issuer, page) {
  const redirects = { redirect_uris: [page], post_logout_redirect_uris: [page] };
  return new Provider(issuer, {
    clients: [
      { client_id: 'orders', client_secret: 'a+secret/of: orders', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
      { client_id: 'page', client_secret: 'the+secret/of the page', grant_types: ['authorization_code', 'refresh_token'], ...redirects },
    ],
    scopes: ['openid', 'offline_access', ...SCOPES],
    cookies: { keys: ['a key'] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    rotateRefreshToken: () => true,
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource, client) => ({
          scope: SCOPES.join(' '),
          audience: 'mq',
          accessTokenTTL: client.clientId === 'page' ? SHORT : 60,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
}

before(async () => {
  if (!binary) return;
  const folder = mkdtempSync(join(tmpdir(), 'courser-tokens-'));
  certificates(folder);
  const [issuerPort, port, http] = [await freePort(), await freePort(), await freePort()];
  const [issuer, page] = [`https://localhost:${issuerPort}`, `http://127.0.0.1:${http}/`];
  const tls = { key: readFileSync(join(folder, 'own.key')), cert: readFileSync(join(folder, 'own.pem')) };
  const server = createServer(tls, provider(issuer, page).callback());
  await new Promise((done) => server.listen(issuerPort, '127.0.0.1', done));
  const settings = {
    MANAGEMENT_LISTEN: `127.0.0.1:${http}`,
    METRICS_LISTEN: 'none',
    OAUTH_RESOURCE_SERVER_ID: 'mq',
    OAUTH_ISSUER: issuer,
    OAUTH_CA: join(folder, 'authority.pem'),
    OAUTH_LEEWAY_SECONDS: '0',
    OAUTH_CLIENT_ID: 'page',
    OAUTH_CLIENT_SECRET: 'the+secret/of the page',
    OAUTH_CLIENT_SCOPES: 'openid offline_access mq.tag:administrator',
    OAUTH_AUTHORIZATION_PARAMS: `resource=${RESOURCE},prompt=consent`,
    OAUTH_TOKEN_PARAMS: `resource=${RESOURCE}`,
  };
  const named = Object.entries(settings).map(([name, value]) => [`COURSER_${name}`, value]);
  const broker = spawn(binary, ['--listen', `127.0.0.1:${port}`, '--data-dir', join(folder, 'data')], {
    env: { ...process.env, ...Object.fromEntries(named) },
    stdio: 'ignore',
  });
  Object.assign(world, { folder, issuer, page, server, broker, port, browser: () => new Browser(folder) });
  const end = Date.now() + patienceMs;
  while (!(await fetch(`${page}health/ready`).catch(() => undefined))?.ok) {
    assert.ok(Date.now() < end && broker.exitCode === null, 'the broker does not start');
    await settle(100);
  }
});

after(async () => {
  if (!binary) return;
  const ended = new Promise((done) => world.broker.once('exit', done));
  world.broker.kill();
  await ended;
  world.server.closeAllConnections();
  world.server.close();
  rmSync(world.folder, { recursive: true });
});

async function tokenOfOrders(scope = SCOPES.join(' ')) {
  const quoted = ['orders', 'a+secret/of: orders'].map(encodeURIComponent).join(':');
  const answer = await world.browser().ask(`${world.issuer}/token`, {
    headers: { authorization: `Basic ${Buffer.from(quoted).toString('base64')}` },
    form: { grant_type: 'client_credentials', resource: RESOURCE, scope },
  });
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text).access_token;
}

test('a program logs in with its token, over AMQP and over HTTP', options, async (t) => {
  const token = await tokenOfOrders();
  const connection = await amqp.connect({ port: world.port, username: '', password: token });
  t.after(() => connection.close());
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  channel.sendToQueue(queue, Buffer.from('hello'));
  await channel.waitForConfirms();
  assert.equal((await channel.get(queue, { noAck: true })).content.toString(), 'hello');
  await connection.updateSecret(Buffer.from(await tokenOfOrders()), 'renewed');
  const answer = await fetch(`${world.page}api/whoami`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual(await answer.json(), { is_internal_user: false, name: 'orders', tags: ['administrator'] });
});

test('a token gives no more than its scopes', options, async (t) => {
  const connection = await amqp.connect({ port: world.port, username: '', password: await tokenOfOrders('mq.read:*/*') });
  t.after(() => connection.close());
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  await assert.rejects(channel.assertQueue('orders'), /configure access to queue 'orders' in vhost '\/' refused for user 'orders'/);
});

test('a person logs in by the code flow, stays in while the token is renewed, and logs out', options, async () => {
  const browser = world.browser();
  const page = { page: world.page };
  const begun = await browser.ask(`${world.page}api/oauth/login`, { json: page });
  assert.equal(begun.status, 200, begun.text);
  const back = new URL(await browser.logIn(JSON.parse(begun.text).location, world.page, 'alice'));
  const [state, code] = ['state', 'code'].map((name) => back.searchParams.get(name));
  const session = await browser.ask(`${world.page}api/oauth/session`, { json: { ...page, state, code } });
  assert.equal(session.status, 200, session.text);
  assert.equal(JSON.parse(session.text).user.name, 'alice');
  const again = await browser.ask(`${world.page}api/oauth/session`, { json: { ...page, state, code } });
  assert.equal(again.status, 400, `a code counts once: ${again.text}`);
  const from = Date.now();
  while (Date.now() - from < (2 * SHORT + 2) * 1000) {
    const who = await browser.ask(`${world.page}api/whoami`);
    assert.deepEqual([who.status, JSON.parse(who.text).name], [200, 'alice']);
    await settle(2000);
  }
  const out = await browser.ask(`${world.page}api/login`, { method: 'DELETE', headers: { 'x-courser-csrf': '1' } });
  assert.equal(JSON.parse(out.text).end_session, `${world.issuer}/session/end`);
  assert.equal((await browser.ask(`${world.page}api/whoami`)).status, 401);
});
