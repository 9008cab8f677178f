// What the broker answers, as far as the page looks at it.

export interface Details {
  rate: number;
  samples?: { sample: number; timestamp: number }[];
}

export interface Page<T> {
  items: T[];
  page: number;
  page_count: number;
  page_size: number;
  filtered_count: number;
  total_count: number;
}

export type Arguments = Record<string, unknown>;

export interface Overview {
  cluster_name: string;
  node: string;
  product_version: string;
  rabbitmq_version: string;
  message_stats?: Record<string, unknown>;
  churn_rates?: Record<string, unknown>;
  queue_totals?: Record<string, unknown>;
  object_totals: Partial<Record<"queues" | "exchanges" | "connections" | "channels" | "consumers", number>>;
  listeners?: { protocol: string; ip_address: string; port: number; tls: boolean }[];
  exchange_types?: { name: string }[];
}

export interface Node {
  name: string;
  uptime: number;
  mem_used: number;
  mem_limit: number;
  mem_alarm: boolean;
  disk_free: number;
  disk_free_limit: number;
  disk_free_alarm: boolean;
  fd_used: number;
  fd_total: number;
  proc_used: number;
  proc_total: number;
  processors: number;
  os_pid: string;
  db_dir: string;
  running: boolean;
  io_sync_count: number;
  /** Milliseconds, of all syncs since the start. */
  io_sync_avg_time: number;
}

export interface Queue {
  name: string;
  vhost: string;
  type: string;
  state: string;
  durable: boolean;
  auto_delete: boolean;
  exclusive: boolean;
  arguments: Arguments;
  policy?: string | null;
  operator_policy?: string | null;
  effective_policy_definition?: Arguments;
  messages: number;
  messages_ready: number;
  messages_unacknowledged: number;
  /** Of a quorum queue: those that wait for another try. */
  messages_delayed?: number;
  consumers: number;
  /** What its messages amount to; not there for a stream, bytes also where they are not known. */
  messages_persistent?: number;
  messages_ram?: number;
  message_bytes?: number;
  message_bytes_ready?: number;
  message_bytes_unacknowledged?: number;
  message_bytes_persistent?: number;
  message_bytes_ram?: number;
  message_stats?: Record<string, unknown>;
  consumer_details?: Consumer[];
  owner_pid_details?: { name: string };
}

export interface Consumer {
  consumer_tag: string;
  active: boolean;
  ack_required: boolean;
  exclusive: boolean;
  prefetch_count: number;
  messages_unacknowledged: number;
  /** What a reader of a stream gets next, and how many messages it is behind. */
  offset?: number;
  offset_lag?: number;
  arguments: Arguments;
  queue: { name: string; vhost: string };
  /** Of a queue, only for who sees the connection. */
  channel_details?: { name: string; connection_name: string; number: number; user: string; peer_host: string; peer_port: number };
}

export interface Exchange {
  name: string;
  vhost: string;
  type: string;
  durable: boolean;
  auto_delete: boolean;
  internal: boolean;
  arguments: Arguments;
  policy?: string;
  message_stats?: Record<string, unknown>;
}

export interface Binding {
  source: string;
  vhost: string;
  destination: string;
  destination_type: "queue" | "exchange";
  routing_key: string;
  arguments: Arguments;
  properties_key: string;
}

export interface Connection {
  name: string;
  vhost: string;
  user: string;
  state: string;
  protocol: string;
  ssl: boolean;
  channels: number;
  peer_host: string;
  peer_port: number;
  host: string;
  port: number;
  connected_at: number;
  user_provided_name?: string;
  client_properties: Record<string, unknown>;
  recv_oct: number;
  send_oct: number;
  recv_oct_details?: Details;
  send_oct_details?: Details;
  send_pend: number;
  timeout: number;
  frame_max: number;
  channel_max: number;
  auth_mechanism: string;
}

export interface Channel {
  name: string;
  number: number;
  vhost: string;
  user: string;
  state: string;
  confirm: boolean;
  transactional: boolean;
  prefetch_count: number;
  global_prefetch_count: number;
  consumer_count: number;
  messages_unacknowledged: number;
  messages_unconfirmed: number;
  connection_details: { name: string };
  message_stats?: Record<string, unknown>;
  consumer_details?: Consumer[];
}

export interface Vhost {
  name: string;
  description: string;
  tags: string[];
  default_queue_type: string;
  tracing: boolean;
  protected_from_deletion: boolean;
  messages: number;
  messages_ready: number;
  messages_unacknowledged: number;
  message_stats?: Record<string, unknown>;
}

export interface UserRow {
  name: string;
  tags: string[];
  hashing_algorithm?: string;
  limits?: Record<string, number>;
}

export interface Permission {
  user: string;
  vhost: string;
  configure: string;
  write: string;
  read: string;
}

export interface TopicPermission {
  user: string;
  vhost: string;
  exchange: string;
  write: string;
  read: string;
}

export interface Policy {
  name: string;
  vhost: string;
  pattern: string;
  "apply-to": string;
  priority: number;
  definition: Arguments;
}

export interface Message {
  payload: string;
  payload_bytes: number;
  payload_encoding: "string" | "base64";
  redelivered: boolean;
  exchange: string;
  routing_key: string;
  message_count: number;
  properties: Record<string, unknown> & { headers?: Arguments };
}

/** A rate of `message_stats`; 0 where nothing was counted. */
export function rateOf(stats: Record<string, unknown> | undefined, name: string): number {
  const details = stats?.[`${name}_details`] as Details | undefined;
  return details?.rate ?? 0;
}

export const numberOf = (stats: Record<string, unknown> | undefined, name: string): number =>
  Number(stats?.[name] ?? 0);
