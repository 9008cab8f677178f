"""Measures AMQP 0-9-1 brokers side by side: workloads, brokers, loads, one run, medians, tables and plots.

Only the standard library. `bench/broker/run` is the command.
"""
