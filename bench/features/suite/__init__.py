"""The parts of `bench/features/run`: each workload drives a broker on a `stage.Stage`, which keeps the figures."""
