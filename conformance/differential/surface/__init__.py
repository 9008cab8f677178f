"""What two brokers take and tell: every argument of a declaration and a consumer, every read and write over HTTP.

`python3 -m surface` in the folder above; `run --surface` starts the brokers and calls it.
"""
