// As much of a browser as a login needs: cookies by host, and the forms of `oidc-provider`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request as plain } from 'node:http';
import { request as secured } from 'node:https';
import { join } from 'node:path';

const REDIRECTS_MAX = 20;

export class Browser {
  #cookies = new Map();
  #ca;

  // With the authority that is in the folder.
  constructor(folder) {
    this.#ca = readFileSync(join(folder, 'authority.pem'));
  }

  // Sends a request, a form or JSON if there is one, and follows no redirect.
  async ask(address, { method, form, json, headers = {} } = {}) {
    const url = new URL(address);
    const body = form ? new URLSearchParams(form).toString() : json ? JSON.stringify(json) : '';
    const cookies = this.#cookies.get(url.host) ?? new Map();
    const request = (url.protocol === 'https:' ? secured : plain)(url, {
      method: method ?? (body ? 'POST' : 'GET'),
      ca: this.#ca,
      headers: {
        'content-length': Buffer.byteLength(body),
        ...(body ? { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' } : {}),
        ...(cookies.size > 0 ? { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') } : {}),
        ...headers,
      },
    });
    request.end(body);
    const answer = await new Promise((done, failed) => request.once('response', done).once('error', failed));
    let text = '';
    for await (const piece of answer) text += piece;
    for (const cookie of answer.headers['set-cookie'] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    this.#cookies.set(url.host, cookies);
    return { status: answer.statusCode, location: answer.headers.location, text };
  }

  // Goes where a login begins, fills in the provider's forms, and returns the address of `page` to which that leads.
  async logIn(address, page, user) {
    let url = address;
    for (let count = 0; count < REDIRECTS_MAX; count += 1) {
      let answer = await this.ask(url);
      const action = /<form[^>]* action="([^"]+)"/.exec(answer.text)?.[1];
      if (answer.status === 200 && action) {
        const prompt = /name="prompt" value="([^"]+)"/.exec(answer.text)[1];
        url = new URL(action, url).href;
        answer = await this.ask(url, { form: prompt === 'login' ? { prompt, login: user, password: 'any' } : { prompt } });
      }
      assert.ok(answer.location, `${url}: ${answer.status} ${answer.text.slice(0, 500)}`);
      url = new URL(answer.location, url).href;
      if (url.startsWith(page)) return url;
    }
    throw new Error(`the login does not end: ${url}`);
  }
}
