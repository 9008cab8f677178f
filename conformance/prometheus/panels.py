"""What the panels of the dashboard RabbitMQ-Overview ask for."""

WINDOW = "10s"
BORDERS = ["100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "5e+07", "1e+08", "+Inf"]

# With every panel comes the name of node and cluster, which the dashboard's variables choose.
IDENTITY = (
    "* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) "
    'rabbitmq_identity_info{rabbitmq_cluster="courser", namespace="", rabbitmq_endpoint="aggregated"}'
)


def total(name):
    return f"sum(rabbitmq_{name} {IDENTITY})"


def by_node(expression):
    return f"sum({expression} {IDENTITY}) by(rabbitmq_node)"


def rate(name):
    return by_node(f"rate(rabbitmq_{name}[{WINDOW}])")


def increase(name):
    return by_node(f"increase(rabbitmq_{name}[{WINDOW}])")


def size_bar(upper, lower):
    upto = increase(f'message_size_bytes_bucket{{le="{upper}"}}')
    below = f' - {increase(f"""message_size_bytes_bucket{{le="{lower}"}}""")}' if lower else ""
    everything = increase('message_size_bytes_bucket{le="+Inf"}')
    return f"100 * ({upto}{below}) / {everything}"


# Panel, expression, and whether there is more than 0 under the load of the test.
PANELS = [
    ("ready messages", total("queue_messages_ready"), True),
    ("incoming messages", f"sum(irate(rabbitmq_global_messages_received_total[{WINDOW}]) {IDENTITY})", True),
    ("publishers", total("global_publishers"), True),
    ("connections", total("connections"), True),
    ("channels", total("channels"), True),
    ("queues", total("queues"), True),
    ("unacknowledged messages", total("queue_messages_unacked"), True),
    ("outgoing messages", f"sum(irate(rabbitmq_global_messages_delivered_total[{WINDOW}]) {IDENTITY})", True),
    ("consumers", total("global_consumers"), True),
    ("nodes", 'count(rabbitmq_identity_info{rabbitmq_cluster="courser", rabbitmq_endpoint="aggregated"})', True),
    (
        "table of nodes",
        "(rabbitmq_erlang_uptime_seconds * on(instance, job) group_left(rabbitmq_version, erlang_version) "
        f"rabbitmq_build_info) {IDENTITY}",
        True,
    ),
    (
        "memory before publishers are blocked",
        f"(rabbitmq_resident_memory_limit_bytes {IDENTITY}) - (rabbitmq_process_resident_memory_bytes {IDENTITY})",
        True,
    ),
    (
        "disk before publishers are blocked",
        f"(rabbitmq_disk_space_available_bytes - rabbitmq_disk_space_available_limit_bytes) {IDENTITY}",
        True,
    ),
    ("file descriptors", f"(rabbitmq_process_max_fds - rabbitmq_process_open_fds) {IDENTITY}", True),
    ("ready by node", by_node("rabbitmq_queue_messages_ready"), True),
    ("unacknowledged by node", by_node("rabbitmq_queue_messages_unacked"), True),
    ("published", rate("global_messages_received_total"), True),
    (
        "average size",
        f'{increase("message_size_bytes_sum")} / {increase("message_size_bytes_count")}',
        True,
    ),
    ("confirmed", rate("global_messages_confirmed_total"), True),
    ("routed", rate("global_messages_routed_total"), True),
    (
        "unconfirmed",
        by_node(
            f"(rate(rabbitmq_global_messages_received_confirm_total[{WINDOW}]) - "
            f"rate(rabbitmq_global_messages_confirmed_total[{WINDOW}]))"
        ),
        False,
    ),
    ("unroutable, dropped", rate("global_messages_unroutable_dropped_total"), True),
    ("unroutable, returned", rate("global_messages_unroutable_returned_total"), True),
    (
        "delivered",
        by_node(
            f"(rate(rabbitmq_global_messages_delivered_consume_auto_ack_total[{WINDOW}]) + "
            f"rate(rabbitmq_global_messages_delivered_consume_manual_ack_total[{WINDOW}]))"
        ),
        True,
    ),
    ("redelivered", rate("global_messages_redelivered_total"), True),
    ("delivered, manual", rate("global_messages_delivered_consume_manual_ack_total"), True),
    ("delivered, automatic", rate("global_messages_delivered_consume_auto_ack_total"), True),
    ("acknowledged", rate("global_messages_acknowledged_total"), True),
    ("polled, automatic", rate("global_messages_delivered_get_auto_ack_total"), True),
    ("polled in vain", rate("global_messages_get_empty_total"), True),
    ("polled, manual", rate("global_messages_delivered_get_manual_ack_total"), True),
    ("queues by node", by_node("rabbitmq_queues"), True),
    ("queues declared", rate("queues_declared_total"), True),
    ("queues created", rate("queues_created_total"), True),
    ("queues deleted", rate("queues_deleted_total"), True),
    ("channels by node", by_node("rabbitmq_channels"), True),
    ("channels opened", rate("channels_opened_total"), True),
    ("channels closed", rate("channels_closed_total"), True),
    ("connections by node", by_node("rabbitmq_connections"), True),
    ("connections opened", rate("connections_opened_total"), True),
    ("connections closed", rate("connections_closed_total"), True),
] + [
    (f"sizes up to {upper}", size_bar(upper, lower), upper in ("100.0", "10000.0"))
    for upper, lower in zip(BORDERS, [None, *BORDERS])
]
