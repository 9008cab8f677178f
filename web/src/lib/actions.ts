// What can be done, as requests, each with its form on the command line where that has it.
import { exchangeSeg, seg, shellWord, withQuery, type Action } from "./http";
import type { Binding } from "./types";

const ctl = (...words: string[]): string => ["courser", "ctl", ...words.map(shellWord)].join(" ");

export const putQueue = (vhost: string, name: string, body: unknown): Action => ({ method: "PUT", path: `/api/queues/${seg(vhost)}/${seg(name)}`, body });

export const deleteQueue = (vhost: string, name: string, only: { empty?: boolean; unused?: boolean } = {}): Action => ({
  method: "DELETE",
  path: withQuery(`/api/queues/${seg(vhost)}/${seg(name)}`, { "if-empty": only.empty || undefined, "if-unused": only.unused || undefined }),
  ctl: ctl("delete_queue", "-p", vhost, name, ...(only.empty ? ["--if-empty"] : []), ...(only.unused ? ["--if-unused"] : [])),
});

/** All that waits, or the first `count`. */
export const purgeQueue = (vhost: string, name: string, count?: number): Action => ({
  method: "DELETE",
  path: withQuery(`/api/queues/${seg(vhost)}/${seg(name)}/contents`, { count }),
  ctl: count === undefined ? ctl("purge_queue", "-p", vhost, name) : undefined,
});

/** Holds back what clients would get of a queue, or ends that. */
export const pauseQueue = (vhost: string, name: string, on: boolean): Action => ({
  method: "PUT",
  path: `/api/queues/${seg(vhost)}/${seg(name)}/${on ? "pause" : "resume"}`,
  ctl: ctl(on ? "pause_queue" : "resume_queue", "-p", vhost, name),
});

export const getMessages = (vhost: string, name: string, body: unknown): Action => ({ method: "POST", path: `/api/queues/${seg(vhost)}/${seg(name)}/get`, body });

export const moveMessages = (vhost: string, name: string, body: unknown): Action => ({ method: "POST", path: `/api/queues/${seg(vhost)}/${seg(name)}/move`, body });

export const routeOf = (vhost: string, exchange: string, body: unknown): Action => ({ method: "POST", path: `/api/exchanges/${seg(vhost)}/${exchangeSeg(exchange)}/route`, body });

export const checkAccess = (body: unknown): Action => ({ method: "POST", path: "/api/access/check", body });

export const publish = (vhost: string, exchange: string, body: unknown): Action => ({ method: "POST", path: `/api/exchanges/${seg(vhost)}/${exchangeSeg(exchange)}/publish`, body });

export const putExchange = (vhost: string, name: string, body: unknown): Action => ({ method: "PUT", path: `/api/exchanges/${seg(vhost)}/${seg(name)}`, body });

export const deleteExchange = (vhost: string, name: string, ifUnused = false): Action => ({
  method: "DELETE",
  path: withQuery(`/api/exchanges/${seg(vhost)}/${seg(name)}`, { "if-unused": ifUnused || undefined }),
});

const bindingPath = (vhost: string, source: string, type: string, destination: string) =>
  `/api/bindings/${seg(vhost)}/e/${exchangeSeg(source)}/${type === "queue" ? "q" : "e"}/${seg(destination)}`;

export const bind = (vhost: string, source: string, type: string, destination: string, body: unknown): Action => ({
  method: "POST",
  path: bindingPath(vhost, source, type, destination),
  body,
});

export const unbind = (binding: Binding): Action => ({
  method: "DELETE",
  path: `${bindingPath(binding.vhost, binding.source, binding.destination_type, binding.destination)}/${seg(binding.properties_key)}`,
});

export const closeConnection = (name: string, reason: string): Action => ({
  method: "DELETE",
  path: `/api/connections/${seg(name)}`,
  headers: reason ? { "x-reason": reason } : undefined,
});

export const closeChannel = (name: string, reason: string): Action => ({
  method: "DELETE",
  path: `/api/channels/${seg(name)}`,
  headers: reason ? { "x-reason": reason } : undefined,
});

export const putVhost = (name: string, body: { description: string; tags: string; default_queue_type?: string }): Action => ({
  method: "PUT",
  path: `/api/vhosts/${seg(name)}`,
  body,
  ctl: ctl("add_vhost", name, ...(body.description ? ["--description", body.description] : []), ...(body.tags ? ["--tags", body.tags] : []), ...(body.default_queue_type ? ["--default-queue-type", body.default_queue_type] : [])),
});

export const deleteVhost = (name: string): Action => ({ method: "DELETE", path: `/api/vhosts/${seg(name)}`, ctl: ctl("delete_vhost", name) });

export const protectVhost = (name: string, on: boolean): Action => ({
  method: on ? "POST" : "DELETE",
  path: `/api/vhosts/${seg(name)}/deletion/protection`,
  ctl: ctl(on ? "enable_vhost_deletion_protection" : "disable_vhost_deletion_protection", name),
});

export const putUser = (name: string, body: Record<string, unknown>): Action => ({ method: "PUT", path: `/api/users/${seg(name)}`, body });

export const deleteUser = (name: string): Action => ({ method: "DELETE", path: `/api/users/${seg(name)}`, ctl: ctl("delete_user", name) });

export const putPermission = (vhost: string, user: string, body: { configure: string; write: string; read: string }): Action => ({
  method: "PUT",
  path: `/api/permissions/${seg(vhost)}/${seg(user)}`,
  body,
  ctl: ctl("set_permissions", "-p", vhost, user, body.configure, body.write, body.read),
});

export const deletePermission = (vhost: string, user: string): Action => ({
  method: "DELETE",
  path: `/api/permissions/${seg(vhost)}/${seg(user)}`,
  ctl: ctl("clear_permissions", "-p", vhost, user),
});

export const putTopicPermission = (vhost: string, user: string, body: { exchange: string; write: string; read: string }): Action => ({
  method: "PUT",
  path: `/api/topic-permissions/${seg(vhost)}/${seg(user)}`,
  body,
  ctl: ctl("set_topic_permissions", "-p", vhost, user, body.exchange, body.write, body.read),
});

export const deleteTopicPermission = (vhost: string, user: string, exchange: string): Action => ({
  method: "DELETE",
  path: `/api/topic-permissions/${seg(vhost)}/${seg(user)}/${seg(exchange)}`,
  ctl: ctl("clear_topic_permissions", "-p", vhost, user, exchange),
});

interface PolicyBody {
  pattern: string;
  "apply-to": string;
  priority: number;
  definition: Record<string, unknown>;
}

export const putPolicy = (operator: boolean, vhost: string, name: string, body: PolicyBody): Action => ({
  method: "PUT",
  path: `/api/${operator ? "operator-policies" : "policies"}/${seg(vhost)}/${seg(name)}`,
  body,
  ctl: ctl(operator ? "set_operator_policy" : "set_policy", "-p", vhost, "--priority", String(body.priority), "--apply-to", body["apply-to"], name, body.pattern, JSON.stringify(body.definition)),
});

export const deletePolicy = (operator: boolean, vhost: string, name: string): Action => ({
  method: "DELETE",
  path: `/api/${operator ? "operator-policies" : "policies"}/${seg(vhost)}/${seg(name)}`,
  ctl: ctl(operator ? "clear_operator_policy" : "clear_policy", "-p", vhost, name),
});

export const putLimit = (of: "vhost" | "user", who: string, name: string, value: number): Action => ({
  method: "PUT",
  path: `/api/${of}-limits/${seg(who)}/${seg(name)}`,
  body: { value },
  ctl: of === "vhost" ? ctl("set_vhost_limits", "-p", who, JSON.stringify({ [name]: value })) : ctl("set_user_limits", who, JSON.stringify({ [name]: value })),
});

export const deleteLimit = (of: "vhost" | "user", who: string, name: string): Action => ({ method: "DELETE", path: `/api/${of}-limits/${seg(who)}/${seg(name)}` });
